"""SQLAlchemy: listeners of one engine, which rewrite the statements it executes."""

from typing import Any

from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import Connection, Engine

from everyorder import Scenario, steps, use

EVENT = "before_cursor_execute"


def audit(connection: Connection, cursor: Any, statement: str, *rest: Any) -> Any:
    return f"{statement} + 1", rest[0]


def trace(connection: Connection, cursor: Any, statement: str, *rest: Any) -> Any:
    return f"{statement} + 10", rest[0]


def limit(connection: Connection, cursor: Any, statement: str, *rest: Any) -> Any:
    return f"{statement} + 100", rest[0]


LISTENERS = {"audit": audit, "trace": trace, "limit": limit}


def new_engine() -> Engine:
    return create_engine("sqlite://")


def listen(engine: Engine, name: str) -> None:
    event.listen(engine, EVENT, LISTENERS[name], retval=True)


def remove(engine: Engine, name: str) -> None:
    event.remove(engine, EVENT, LISTENERS[name])


def result(engine: Engine) -> Any:
    with engine.connect() as connection:
        return connection.execute(text("select 1")).scalar()


def listening(engine: Engine) -> str:
    return " ".join(
        name for name, each in LISTENERS.items() if event.contains(engine, EVENT, each)
    )


scenario = Scenario(
    *steps("listen", [*LISTENERS], listen, undo=remove),
    uses=[use("execute", result), use("contains", listening)],
    create=new_engine,
)
