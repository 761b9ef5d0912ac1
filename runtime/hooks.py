"""Hooks: what a lower area asks of a higher one, which answers when it is imported.

Imports point one way, so what a tensor needs of autograd, or a schema of tensors,
cannot be imported there.  Each such question is one hook of this file, with the type of
its answer; the area that can answer sets it once, when it is imported.

Rules:
- a hook is set by one module, once; a module whose first import was interrupted sets it
  again, and any other one may not (`AssertionError`);
- `answer` is None until then, where being without an answer means something;
- what several areas add to, as plug-ins of the compiler do, is no hook.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

A = TypeVar("A")


class Hook(Generic[A]):
    """One question, and its answer as soon as somebody has one."""

    __slots__ = ("answer", "question")

    def __init__(self, question: str) -> None:
        self.question = question
        self.answer: A | None = None

    def set(self, answer: A) -> None:
        """Answer it, for the module that made the answer."""
        known = self.answer is None or self.answer.__module__ == answer.__module__
        assert known, f"{self.question}: answered already"
        self.answer = answer

    def get(self) -> A:
        """The answer; who asks this way has seen to it that its area is loaded."""
        assert self.answer is not None, f"{self.question}: nobody has answered"
        return self.answer


class Watcher(Protocol):
    """What a tracer is told; a call is made by it, and its result returned."""

    def read(self, tensor: Any, asked: str) -> None:
        """Something was asked of a tensor that no operator sees."""

    def applied(self, function: type, args: tuple[Any, ...]) -> Any:
        """`function.apply(*args)`, of an autograd function."""

    def called(
        self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """A call of a compiled function."""

    def forked(
        self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """A fork; returns a future."""


# Asked by schemas, answered by tensors.
TENSOR_OF_NUMBER: Hook[Callable[[Any], object]] = Hook("the tensor of a number")
# Asked by tensors, answered by autograd.
RECORDS: Hook[Callable[[], bool]] = Hook("whether the thread records")
# Asked by tensors, answered by dispatch to Python.
APPLY_POLICY: Hook[Callable[[Any, int], None]] = Hook("a handler asked for metadata")
ELEMENT: Hook[Callable[[Any], Any]] = Hook("the one element of a handled tensor")
# Asked by tensors, autograd and programs, answered by tracing.
WATCHER: Hook[Watcher] = Hook("who is told of what is traced")
# Asked by steps of programs, answered by what runs them.
PLAN: Hook[Callable[[Any], Any]] = Hook("the plan of a function")
# Asked by whoever compiles together, answered by the emission of bodies.
BODY: Hook[Callable[..., None]] = Hook("the graph of a body")
