"""Listeners: who hears of definitions, and what they know at every moment."""

from weakref import ref

from everyorder.harness.scenario import (
    Scenario,
    define,
    fallback,
    impl,
    listen,
    look_up,
    reserve,
    step,
    together,
)
from everyorder.harness.scenario.registrations import KnowingListener, Refused
from everyorder.harness.scenario.step import Step
from everyorder.runtime.dispatch import Dispatcher, Library
from everyorder.runtime.schema import OperatorName, Schema
from tests.scenarios.asking import answer
from tests.scenarios.kernels import composed, no_cpu, on_cpu, typed_two

_index = define("text::index(Tensor x) -> Tensor")

# A listener hears of definitions before and after it came; kernels are not news.
hears_of_definitions = Scenario(
    listen(),
    _index,
    impl("text::index", on_cpu, "CPU"),
)

# A definition that goes while a kernel stays is told of.
definition_goes_kernel_stays = Scenario(
    _index,
    define("text::count(Tensor x) -> Tensor"),
    given=[listen(), impl("text::index", composed)],
    probes=("cpu",),
)

# A definition that is refused is never told of.
hears_nothing_of_refusals = Scenario(
    listen(),
    _index,
    impl("text::index", typed_two, "CPU"),
)

# Reservations and fallbacks are not told of.
hears_of_nothing_else = Scenario(
    listen(),
    reserve("text::index"),
    fallback(no_cpu, "CPU"),
)

# Two listeners are told, and listed, in the order in which they came.
first_come_first_told = Scenario(
    listen(),
    listen(),
    _index,
    order_dependent="listeners are told in the order in which they came",
)

# A listener that raises keeps a definition out, and is kept out where that one is.
raises_at_a_definition = Scenario(
    listen(refuses=["text::index"]),
    _index,
    impl("text::index", on_cpu, "CPU"),
    uses=[look_up("text::index")],
)

# Whoever was told before somebody raised is told the reverse, whoever comes after him
# is told nothing; of another operator all are told.
some_were_told = Scenario(
    listen(),
    listen(refuses=["text::index"]),
    _index,
    define("text::count(Tensor x) -> Tensor"),
    order_dependent="listeners are told in the order in which they came",
    probes=("cpu",),
)

# Of two definitions that come together, the first is taken back for the second.
two_come_together = Scenario(
    listen(),
    listen(refuses=["text::index"]),
    together(define("text::count(Tensor x) -> Tensor"), _index),
    order_dependent="listeners are told in the order in which they came",
    probes=("cpu",),
)

# A new listener that raises at one of those that are there is told the reverse of the
# others.
raises_at_what_is_there = Scenario(
    define("text::count(Tensor x) -> Tensor"),
    define("text::merge(Tensor x) -> Tensor"),
    listen(refuses=["text::index"]),
    _index,
    probes=("cpu",),
)


class _Fails(KnowingListener):
    """Raises at the end of every operator that it is told of; it forgets it before."""

    def on_operator_deregistered(self, name: OperatorName, schema: Schema) -> None:
        super().on_operator_deregistered(name, schema)
        raise Refused(str(name))


class _Expecting:
    """A registration that ends as it should although listeners raise, and says so."""

    def __init__(self, target: Dispatcher, held: Library, operators: int) -> None:
        self.tokens = held.tokens
        self._target = target
        self._held: Library | None = held
        self._operators = operators

    def close(self) -> None:
        if self._held is None:
            return
        held, self._held, self.tokens = self._held, None, ()
        listening = self._target.state.subscriptions
        wanted = self._operators * sum(type(s.listener) is _Fails for s in listening)
        raised = 0
        try:
            held.close()
        except ExceptionGroup as error:
            raised = len(error.exceptions)
        assert raised == wanted, "each listener, each operator"


def _ends_with_errors(*schemas: str) -> Step:
    """Definitions in one library, whose listeners may raise when it is closed."""

    def do(target: Dispatcher) -> _Expecting:
        held = Library("text", "FRAGMENT", dispatcher=target, origin="expecting")
        for schema in schemas:
            held.define(schema)
        return _Expecting(target, held, len(schemas))

    return step(f"define({', '.join(schemas)})", do)


def _fails() -> Step:
    return step("add_listener(fails)", lambda to: to.add_listener(_Fails(), "fails"))


# A removal always completes: all listeners are told, and their errors come together.
raises_at_an_end = Scenario(
    _ends_with_errors("index(Tensor x) -> Tensor", "count(Tensor x) -> Tensor"),
    _ends_with_errors("merge(Tensor x) -> Tensor"),
    _fails(),
    operators=["text::index", "text::count", "text::merge"],
    probes=("cpu",),
)

# The same with listeners before and after the one that raises.
raises_between_others = Scenario(
    _ends_with_errors("index(Tensor x) -> Tensor"),
    listen(),
    _fails(),
    operators=["text::index"],
    order_dependent="listeners are told in the order in which they came",
    probes=("cpu",),
)


class _Writes(KnowingListener):
    """Registers, and closes, where it is told; it knows what it is told then."""

    def __init__(self, target: Dispatcher) -> None:
        super().__init__()
        self._target = ref(target)

    def on_operator_registered(self, name: OperatorName, schema: Schema) -> None:
        self.names += self._answers(name)

    def on_operator_deregistered(self, name: OperatorName, schema: Schema) -> None:
        for each in self._answers(name):
            self.names.remove(each)

    def _answers(self, name: OperatorName) -> list[str]:
        target = self._target()
        assert target is not None, "it is being told"
        library = Library("text", "FRAGMENT", dispatcher=target, origin="inside")
        wild = Library("_", "IMPL", dispatcher=target, origin="inside")
        return [
            f"{name}: {answer(each)}"
            for each in (
                lambda: library.reserve("inside"),
                lambda: wild.fallback(no_cpu, "CPU"),
                library.close,
            )
        ]


# Whoever writes while being told is refused, and nobody waits for the lock.
writes_when_told = Scenario(
    step("add_listener(writes)", lambda to: to.add_listener(_Writes(to), "writes")),
    _index,
    define("text::count(Tensor x) -> Tensor"),
    probes=("cpu",),
)
