"""structlog: values bound to the events of all loggers of a context."""

from typing import Any

import structlog
from structlog.contextvars import (
    bind_contextvars,
    merge_contextvars,
    unbind_contextvars,
)

from everyorder import Scenario, steps, use

VALUES = {"user": "ada", "request": 7, "debug": True}


def new_logger() -> Any:
    structlog.contextvars.clear_contextvars()
    return structlog.wrap_logger(
        structlog.ReturnLogger(),
        processors=[merge_contextvars, structlog.processors.KeyValueRenderer(True)],
    )


def bind(logger: Any, name: str) -> None:
    bind_contextvars(**{name: VALUES[name]})


def unbind(logger: Any, name: str) -> None:
    unbind_contextvars(name)


scenario = Scenario(
    *steps("bind", [*VALUES], bind, undo=unbind),
    uses=[
        use("info", lambda logger: logger.info("saved")),
        use(
            "get_contextvars",
            lambda logger: sorted(structlog.contextvars.get_contextvars()),
        ),
    ],
    create=new_logger,
)
