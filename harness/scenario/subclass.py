"""Classes with handlers, for tensors that dispatch to Python.

True only here: the least that dispatch to Python takes for such a tensor.  It stands
around a plain one; its handler notes that it was asked, and calls the operator with the
plain one, unless the class says otherwise (`handle`).
"""

from collections.abc import Callable, Iterator
from typing import Any

from harness.scenario.probes import probe_tensor
from harness.scenario.recorder import Recorder
from runtime.python_dispatch import current_context
from runtime.tensors import Tensor
from runtime.tensors.keys import HANDLED

# (func, types, args, kwargs) -> what the operator returns, or NotImplemented
Handle = Callable[[Any, Any, Any, Any], Any]


def unwrapped(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Call the operator with what the tensors stand around."""
    return func(*_plain(args), **kwargs)


class ProbeSubclass(Tensor):
    """A tensor of a class with a handler, around a plain probe; see the module."""

    __slots__ = ("inner", "label", "recorder")

    handle: Handle = staticmethod(unwrapped)

    def __init__(self, label: str, recorder: Recorder, kind: str = "cpu") -> None:
        self.inner = probe_tensor(kind)
        super().__init__(key_bits=self.inner.key_bits | HANDLED)
        self._context = current_context()
        self.label = label
        self.recorder = recorder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Note that the class was asked, and `handle`."""
        for each in _tensors(args):
            if type(each) is cls:
                each.recorder.note(each.label)
                break
        return cls.handle(func, types, args, kwargs or {})


def _tensors(values: Any) -> Iterator[Any]:
    for each in values:
        if isinstance(each, (list, tuple)):
            yield from _tensors(each)
        else:
            yield each


def _plain(values: Any) -> Any:
    """The same values, each tensor of a class with a handler its inner one."""
    return [
        _plain(each)
        if isinstance(each, (list, tuple))
        else getattr(each, "inner", each)
        for each in values
    ]
