"""Context managers of programs: what is entered, and how it is left.

True only here: the context manager protocol of `prim::With`.

Rules:
- an object of a class of a program is entered by its compiled methods, any other object
  by those of its Python class;
- `__exit__` is called once, with the class of what was raised, the exception and its
  traceback, or with three times None; of these as many are given as it takes;
- where it returns something true the exception is swallowed, as in Python; if the block
  was to give values, there are none, and that is an error.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from runtime.errors.script_running import ErrorSwallowed
from runtime.schema.declaration import DeclaredType, InterfaceType
from runtime.script.ir import Node
from runtime.script.running.methods import method_of


class With:
    """The manager of one run of a block, as a context manager of Python's."""

    __slots__ = ("_leave", "_manager", "_needs", "_type")

    _leave: Callable[..., Any]

    def __init__(self, manager: Any, type_: Any, needs: bool) -> None:
        self._manager = manager
        self._type = type_
        self._needs = needs

    @classmethod
    def of(cls, node: Node) -> Callable[[Any], Self]:
        """What makes it of a manager, for a node."""
        type_, needs = node.inputs[0].type, bool(node.outputs)
        return lambda manager: cls(manager, type_, needs)

    def __enter__(self) -> Any:
        """Enter the manager."""
        manager, type_ = self._manager, self._type
        if isinstance(type_, DeclaredType):
            owner = None if isinstance(type_, InterfaceType) else type_
            leave, count = method_of(manager, owner, "__exit__")
            enter, _ = method_of(manager, owner, "__enter__")
            self._leave = lambda *error: leave(manager, *error[: count - 1])
            return enter(manager)
        kind: Any = manager.__class__
        leaving: Any = kind.__exit__
        self._leave = partial(leaving, manager)
        return kind.__enter__(manager)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        """Leave the manager; whether the exception is swallowed."""
        swallows = bool(self._leave(kind, error, traceback))
        if swallows and error is not None and self._needs:
            raise ErrorSwallowed(
                manager=f"an object of type {type(self._manager).__name__}",
                error=kind.__name__,
            )
        return swallows and error is not None
