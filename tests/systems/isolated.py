"""A registry that is global to the process, for tests that give it one of its own.

`SCENARIO` is a variable of a module, so it can be loaded again by a spawned process.
"""

import faulthandler
import os
import signal
import time
from typing import Any

import pytest

from everyorder.harness.scenario import Scenario, step, steps, use

TABLE: dict[str, int] = {}


def add(_: object, name: str) -> Any:
    if name in TABLE:
        raise LookupError(name)
    TABLE[name] = len(TABLE)
    return lambda: TABLE.pop(name)


class Gone:
    """A handle that something keeps alive."""

    kept: list["Gone"] = []  # noqa: RUF012  # that is the fault

    def __init__(self) -> None:
        self.kept.append(self)

    def close(self) -> None: ...


def refuse(_: object) -> None:
    raise PermissionError("in use")


def shown(_: object) -> str:
    return ", ".join(f"{name}: {place}" for name, place in sorted(TABLE.items()))


def leave(_: object) -> Any:
    os._exit(3)


def crash(_: object) -> Any:
    faulthandler.disable()  # the crash is meant: no stack for people
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(_: object) -> Any:
    while True:
        time.sleep(60)


def skip(_: object) -> Any:
    pytest.skip("no database")


def system_exit(_: object) -> Any:
    raise SystemExit(7)


def made(isolation: Any) -> Scenario:
    return Scenario(
        *steps("add", "ab", add),
        step("leave", leave, undo=None),
        step("crash", crash, undo=None),
        step("hang", hang, undo=None),
        step("skip", skip, undo=None),
        step("system_exit", system_exit, undo=None),
        step("refuse", lambda _: None, undo=refuse, may_refuse=True),
        step("leak", lambda _: Gone()),
        step("nothing", lambda _: None),
        uses=[
            use("first", lambda _: min(TABLE, key=TABLE.__getitem__)),
            use("table", lambda _: TABLE),
            use("fail", lambda _: pytest.fail("no")),
        ],
        create=object,
        observe=shown,
        check=lambda _: ["too many"] if len(TABLE) > 1 else [],
        isolation=isolation,
    )


SCENARIO = made("spawn")
FORKED = made("fork")
