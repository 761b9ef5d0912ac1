"""The tracer: where calls of a traced thread come to its recorder.

True only here: the kernel at the key `Tracer`, the watcher of calls beside operators,
and futures that were forked in a trace.

Rules:
- while the recorder runs what was called, the key is not included: what happens inside
  of a call is the call's;
- a thread that includes the key without a recorder runs as if it did not;
- a fork runs at once, on this thread, and is recorded into a graph of its own; its
  future is waited for in the trace, anywhere, and after it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from runtime.dispatch.kernel import linked
from runtime.dispatch.library import Library
from runtime.futures import Future
from runtime.keys import LOCAL
from runtime.keys.local import view_of
from runtime.schema.tags import NUMBERS_AS_TENSORS
from runtime.schema.types import FutureType
from runtime.script.ir import Value
from runtime.script.running import call
from runtime.script.tracing.places import place_of_caller
from runtime.script.tracing.recorder import CURRENT, Recorder
from runtime.tensors.traced import TRACER, WATCHERS


def _recorded(record: Callable[[Recorder], Any], run: Callable[[], Any]) -> Any:
    """What the recorder of the thread makes of a call, which is not traced itself."""
    recorder, view = CURRENT.recorder, LOCAL.view
    LOCAL.view = view_of(view.included & ~TRACER, view.excluded)
    try:
        return run() if recorder is None else record(recorder)
    finally:
        LOCAL.view = view


def recording(below: Any, keyset: Any) -> Callable[..., Any]:
    """At Tracer: run the operator below, and record the call."""
    schema, run = below.schema, below.run
    numbers = NUMBERS_AS_TENSORS in below.tags

    def record(*arguments: Any) -> Any:
        return _recorded(
            lambda recorder: recorder.operator(schema, numbers, run, arguments),
            lambda: run(*arguments),
        )

    return record


class TracedFuture(Future[Any]):
    """The future of a fork in a trace, complete from the start."""

    __slots__ = ()

    def wait(self, timeout: float | None = None) -> Any:
        """The value; a wait in a trace is recorded."""
        result = super().wait(timeout)
        recorder = CURRENT.recorder
        value = None if recorder is None else recorder.find(self)
        if recorder is not None and value is not None:
            recorder.builder.place = place_of_caller()
            waited: Value = recorder.builder.node("prim::wait", [value]).output
            recorder.learn(result, waited)
        return result


class _Tracer:
    """The watcher: hands what it is told to the recorder of the thread."""

    def read(self, tensor: Any, asked: str) -> None:
        recorder = CURRENT.recorder
        if recorder is not None:
            recorder.told(tensor, asked)

    def applied(self, function: type, args: tuple[Any, ...]) -> Any:
        apply: Callable[..., Any] = function._applied  # type: ignore[attr-defined]  # an autograd function
        return _recorded(
            lambda recorder: recorder.python(function, args), lambda: apply(*args)
        )

    def called(
        self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        return _recorded(
            lambda recorder: recorder.compiled(function, args, kwargs),
            lambda: call(function, args, kwargs),
        )

    def forked(
        self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        outer = CURRENT.recorder
        future = TracedFuture()
        if outer is None:
            future.set_result(function(*args, **kwargs))
            return future
        place = place_of_caller()
        inner = Recorder(parent=outer, keeps=outer.keeps)
        with inner:
            result = function(*args, **kwargs)
        inner.builder.place = outer.builder.place = place
        value = inner.value(result, None, "fork")
        inner.builder.result(value)
        node = outer.builder.node(
            "prim::fork",
            inner.captured,
            [FutureType(value.type)],
            graph=inner.builder.graph,
        )
        outer.kept += inner.kept
        future.set_result(result)
        outer.learn(future, node.output)
        return future


# They live as long as the default dispatcher does.
_LIBRARY = Library("_", "IMPL", origin="tracing")
_LIBRARY.fallback(linked(recording, "tracer"), "Tracer")
WATCHERS.append(_Tracer())
