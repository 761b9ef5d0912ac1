"""The teaching tool: its tables depend on the chosen keys, and not on their order."""

from collections.abc import Callable
from functools import partial

from everyorder.harness.scenario import Scenario, step, use
from tests.examples.teaching import PythonDispatcher
from tests.scenarios.asking import answer


class Chosen:
    """The tool, and the keys that are chosen now."""

    def __init__(self) -> None:
        self.tool = PythonDispatcher()
        self.keys: list[str] = []

    def choose(self, key: str) -> Callable[[], None]:
        """Register one key more; where it is refused, all stays as it was."""
        chosen = sorted([*self.keys, key])
        self.tool.register(chosen)
        self.keys = chosen
        return partial(self._give_up, key)

    def _give_up(self, key: str) -> None:
        self.keys.remove(key)
        self.tool.register(self.keys)


def _tables(chosen: Chosen) -> str:
    # Kernels are listed by key; of the raw texts only how long they are.
    return (
        chosen.tool.registrations()
        + chosen.tool.dispatch_table()
        + f"{len(chosen.tool.raw_dispatch_table().splitlines())} lines in all\n"
    )


def _refused(chosen: Chosen) -> str:
    asked = (["CPU", "CPU"], ["CPU", "CUDA", "Meta"], ["CPUU"])
    return (
        "\n".join(answer(partial(chosen.tool.register, keys)) for keys in asked)
        + f"\n{len(chosen.tool.raw_registrations().splitlines())} lines as before"
    )


# The least of it, told by what it shows: asked far sooner, of mutants of the runtime.
one_key = Scenario(
    step('choose("CPU")', lambda to: to.choose("CPU")),
    create=Chosen,
    observe=lambda chosen: _tables(chosen) + _refused(chosen),
    fingerprint=lambda chosen, _: (
        chosen.tool.raw_registrations() + chosen.tool.raw_dispatch_table()
    ),
)

# One kernel for each chosen key; the two composites are alternatives.
tables_of_chosen_keys = Scenario(
    step('choose("CPU")', lambda to: to.choose("CPU")),
    step(
        'choose("CompositeImplicitAutograd")',
        lambda to: to.choose("CompositeImplicitAutograd"),
    ),
    step(
        'choose("CompositeExplicitAutograd")',
        lambda to: to.choose("CompositeExplicitAutograd"),
    ),
    given=[step('choose("AutogradCPU")', lambda to: to.choose("AutogradCPU"))],
    uses=[use("register(what is refused)", _refused)],
    create=Chosen,
    observe=lambda chosen: _tables(chosen) + _refused(chosen),
)
