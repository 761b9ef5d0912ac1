"""Playing schedules: what is told of one that breaks a law.

True only here: a failing schedule is cut down before it is told.
"""

from collections.abc import Iterable

from tests.rpc.simulator.schedule import Schedule, drawn, shrunk
from tests.rpc.simulator.worker import Broken
from tests.rpc.simulator.world import World


def broken(schedule: Schedule) -> str | None:
    """The law that a schedule breaks, and what was found; None where all hold.

    What a session raises breaks a law, too: it never does.
    """
    try:
        World(schedule).play()
    except Broken as found:
        return str(found)
    except Exception as error:
        return f"Sessions raise nothing. {type(error).__name__}: {error}"
    return None


def play(seeds: Iterable[int]) -> None:
    """Play the schedules of some seeds.

    Raises:
        AssertionError: one breaks a law; it is told as short as it can be found.
    """
    for seed in seeds:
        found = broken(drawn(seed))
        if found is not None:
            law = found.split(".")[0]
            small = shrunk(drawn(seed), lambda part, law=law: _same(part, law))  # type: ignore[misc]  # bound now
            actions = "\n".join(f"    {action!r}" for action in small.actions)
            raise AssertionError(
                f"{broken(small)}\n{actions}\n"
                f"replay: World(named({small.name!r})).play()"
            )


def _same(schedule: Schedule, law: str) -> bool:
    found = broken(schedule)
    return found is not None and found.split(".")[0] == law
