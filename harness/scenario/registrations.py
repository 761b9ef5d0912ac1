"""The dispatcher's steps, named and written as on `runtime.Library`.

Operators are written with their namespace, and every step has a separate library,
opened for that namespace. A library of kind DEF is part of the step, because it claims
the namespace; the others do not claim it and stay open.

A kernel is wrapped so that the system can observe which kernels a call ran. The wrapper
has the traits of the kernel, so the dispatcher treats both alike.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario.effects import effects_of
from everyorder.harness.scenario.recorder import LabelRecorder, kernel_maker
from everyorder.harness.scenario.step import Closable, Perform, Step
from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.kernel import Kernel, kernel_of
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.dispatch.registration_record import RegistrationRecord
from everyorder.runtime.schema.parser import parse_name, parse_schema_or_name
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import OperatorName

KernelLike = Callable[..., Any] | Kernel


def define(
    schema: str | Schema,
    alias_analysis: str = "",
    *,
    kernel: KernelLike | None = None,
    tags: Iterable[str] = (),
    kind: str = "FRAGMENT",
    debug: str | None = None,
) -> Step:
    """Return a step for `Library.define`.

    Example: `define("demo::add(Tensor x, Tensor y) -> Tensor")`.
    """
    name, tags = operator_of(schema), tuple(tags)
    text = _call(
        "define",
        _quoted(schema),
        alias_analysis and _quoted(alias_analysis),
        kernel=kernel and _named(kernel),
        tags=_quoted(tags) if tags else None,
        kind=None if kind == "FRAGMENT" else _quoted(kind),
        debug=debug and _quoted(debug),
    )

    def register(library: Library, run: Kernel | None) -> Closable:
        if run is None and not tags and debug is None:
            return library.define(schema, alias_analysis)
        return library.define(
            schema, alias_analysis, kernel=run, tags=tags, debug=debug
        )

    return _step(text, name, kind, None, kernel, False, debug, register)


def impl(
    op: str,
    kernel: KernelLike,
    dispatch_key: str | Iterable[str] | None = None,
    *,
    library_key: str | None = None,
    with_keyset: bool = False,
    allow_override: bool = True,
    kind: str = "IMPL",
    debug: str | None = None,
) -> Step:
    """Return a step for `Library.impl`: `impl("demo::add", cpu_add, "CPU")`."""
    named_kernel = _named(kernel)
    if not isinstance(dispatch_key, (str, type(None))):
        dispatch_key = tuple(dispatch_key)
    text = _call(
        "impl",
        _quoted(op),
        named_kernel,
        dispatch_key and _quoted(dispatch_key),
        library_key=library_key and _quoted(library_key),
        with_keyset=with_keyset or None,
        allow_override=None if allow_override else False,
        kind=None if kind == "IMPL" else _quoted(kind),
        debug=debug and _quoted(debug),
    )

    def register(library: Library, run: Kernel | None) -> Closable:
        assert run is not None, "an impl has a kernel"
        # `run` accepts the keyset if the kernel does.
        return library.impl(
            op, run, dispatch_key, allow_override=allow_override, debug=debug
        )

    name = _with_namespace(parse_name(op))
    impl_step = _step(
        text, name, kind, library_key, kernel, with_keyset, debug, register
    )
    if debug is None:
        return impl_step
    at = dispatch_key or library_key or ""
    keys = (at,) if isinstance(at, str) else at
    return replace(impl_step, kernels=tuple(f"{key} of {op}: {debug}" for key in keys))


def fallback(
    kernel: KernelLike,
    dispatch_key: str,
    *,
    with_keyset: bool = False,
    debug: str | None = None,
) -> Step:
    """Return a step for `Library.fallback`, as `fallback(fallthrough, "Tracer")`."""
    text = _call(
        "fallback",
        _named(kernel),
        _quoted(dispatch_key),
        with_keyset=with_keyset or None,
        debug=debug and _quoted(debug),
    )

    def register(library: Library, run: Kernel | None) -> Closable:
        assert run is not None, "a fallback has a kernel"
        return library.fallback(run, dispatch_key, debug=debug)

    return _step(text, None, "IMPL", None, kernel, with_keyset, debug, register)


def reserve(op: str) -> Step:
    """Return a step for `Library.reserve`: it keeps the name of an operator alive."""

    def register(library: Library, run: Kernel | None) -> Closable:
        return library.reserve(op)

    text = _call("reserve", _quoted(op))
    return _step(
        text,
        _with_namespace(parse_name(op)),
        "FRAGMENT",
        None,
        None,
        False,
        None,
        register,
    )


def library(ns: str, kind: str = "DEF", dispatch_key: str | None = None) -> Step:
    """Return a step that opens `Library(ns, kind, dispatch_key)`.

    A library of kind DEF claims the namespace.
    """
    text = _call(
        "library", _quoted(ns), _quoted(kind), dispatch_key and _quoted(dispatch_key)
    )

    def prepare(target: Dispatcher, origin: str) -> Perform:
        return partial(
            Library, ns, kind, dispatch_key, dispatcher=target, origin=origin
        )

    return Step(text, prepare, owner="dispatcher")


def merges_alias_kinds() -> Step:
    """Return a step that selects the 2020 rule for second definitions; for `given=`.

    It is a setting and not a registration: undoing it does nothing.
    """

    def prepare(target: Dispatcher, origin: str) -> Perform:
        def perform() -> Closable:
            target.state = target.state._replace(merges_alias_kinds=True)
            return _Several([])

        return perform

    return Step("merges_alias_kinds()", prepare, owner="dispatcher")


class Refused(Exception):
    """A listener refuses an operator that was registered."""


class KnowingListener:
    """A listener that lists the schemas of the live operators.

    If it `refuses` an operator, it raises `Refused`, which abandons the step.
    """

    def __init__(self, refuses: Collection[str] = ()) -> None:
        self.names: list[str] = []
        self.refuses = refuses

    def on_operator_registered(self, name: OperatorName, schema: Schema) -> None:
        """Add the schema, or raise `Refused` if the operator is refused."""
        if str(name) in self.refuses:
            raise Refused(str(name))
        self.names.append(str(schema))

    def on_operator_deregistered(self, name: OperatorName, schema: Schema) -> None:
        """Remove the schema."""
        self.names.remove(str(schema))

    def shown(self) -> str:
        """Return the live schemas, sorted: the order of registration must not show."""
        return ", ".join(sorted(self.names)) or "nothing"


def listen(*, refuses: Collection[str] = ()) -> Step:
    """Return a step for `Dispatcher.add_listener` with a `KnowingListener`.

    The listener raises for an operator that it `refuses`.
    """

    def prepare(target: Dispatcher, origin: str) -> Perform:
        recorder: LabelRecorder | None = getattr(target, "recorder", None)

        def perform() -> Closable:
            listener = KnowingListener(refuses)
            if recorder is not None:
                recorder.watch(f"listener ({origin})", listener)
            return target.add_listener(listener, origin)

        return perform

    text = _call("listen", refuses=_quoted(list(refuses)) if refuses else None)
    return Step(text, prepare, owner="dispatcher")


class _Several:
    """The handles of several steps done together; `close` ends them last first."""

    __slots__ = ("__weakref__", "_handles")

    def __init__(self, handles: list[Closable]) -> None:
        self._handles = handles

    @property
    def tokens(self) -> tuple[RegistrationRecord, ...] | None:
        """Return the live records of all handles; None if one lacks `tokens`."""
        tokens: list[RegistrationRecord] = []
        for each in self._handles:
            records = getattr(each, "tokens", None)
            if records is None:
                return None
            tokens += records
        return tuple(tokens)

    def close(self) -> None:
        while self._handles:
            self._handles.pop().close()


def together(*steps: Step) -> Step:
    """Return one step for several; if one of them fails, those before it are ended."""

    def prepare(target: Any, origin: str) -> Perform:
        performs = [each.prepare(target, origin) for each in steps]

        def perform() -> Closable:
            handles: list[Closable] = []
            try:
                for each in performs:
                    handles.append(each())  # noqa: PERF401  # kept if one fails
            except BaseException:
                _Several(handles).close()
                raise
            return _Several(handles)

        return perform

    names = tuple(dict.fromkeys(name for each in steps for name in each.operators))
    kernels = tuple(dict.fromkeys(each for step in steps for each in step.kernels))
    text = f"together({', '.join(each.text for each in steps)})"
    has_effects = any(each.has_effects for each in steps)
    owners = {each.owner for each in steps}
    owner = owners.pop() if len(owners) == 1 else ""
    named = tuple(each for step in steps for each in step.named)
    return Step(text, prepare, names, kernels, has_effects, owner, named=named)


def shared(*steps: Step) -> tuple[Step, ...]:
    """Return the same steps with a common library for those that open equal ones.

    The library is opened for the first of them, and its origin names that step. It
    stays open, so a DEF library, which its own step closes, cannot be shared.
    """
    group = object()

    def sharing(each: Step) -> Step:
        def prepare(target: Any, origin: str) -> Perform:
            effects = effects_of(target)
            first, libraries = effects.libraries.setdefault(group, (origin, {}))

            def opens(*arguments: Any, **options: Any) -> Library:
                if arguments not in libraries:
                    libraries[arguments] = Library(*arguments, **options)
                return libraries[arguments]

            with effects.opening(opens):
                return each.prepare(target, first)

        return replace(each, text=f"shared({each.text})", prepare=prepare)

    return tuple(sharing(each) for each in steps)


def operator_of(schema: str | Schema) -> OperatorName:
    """Return the name of the operator of a schema, or of a bare name."""
    parsed = schema if isinstance(schema, Schema) else parse_schema_or_name(schema)
    name = parsed.name if isinstance(parsed, Schema) else parsed
    return _with_namespace(name)


def _with_namespace(name: OperatorName) -> OperatorName:
    if name.namespace is None:
        raise NotAScenario(
            found=f"operator {str(name)!r} without a namespace",
            wanted=f"its full name, as in 'ns::{name}'",
        )
    return name


def _step(
    text: str,
    name: OperatorName | None,
    kind: str,
    library_key: str | None,
    kernel: KernelLike | None,
    with_keyset: bool,
    debug: str | None,
    register: Callable[[Library, Kernel | None], Closable],
) -> Step:
    """Return a step with a separate library; the step itself opens a DEF library."""
    namespace = "_" if name is None else name.namespace or "_"

    def prepare(target: Dispatcher, origin: str) -> Perform:
        recorder: LabelRecorder | None = getattr(target, "recorder", None)
        original = None if kernel is None else kernel_of(kernel, with_keyset)
        opened = partial(
            opener(target),
            namespace,
            kind,
            library_key,
            dispatcher=target,
            origin=origin,
        )

        # Create a new kernel each time: the law about memory expects it to die on undo.
        run = kernel_maker(original, origin, recorder, debug) if original else _nothing
        if kind != "DEF":
            library = opened()
            return lambda: register(library, run())

        def claim_and_perform() -> Closable:
            owner = opened()
            try:
                register(owner, run())
            except BaseException:
                owner.close()
                raise
            return owner

        return claim_and_perform

    names = () if name is None else (str(name),)
    named = () if kernel is None or isinstance(kernel, Kernel) else (kernel,)
    return Step(text, prepare, names, owner="dispatcher", named=named)


def _nothing() -> None:
    """Return None, as the kernel of a step without one."""


def opener(target: Any) -> Callable[..., Library]:
    """Return the function that opens the libraries of steps that are prepared now."""
    effects = getattr(target, "effects", None)
    opens: Callable[..., Library] = Library if effects is None else effects.opens
    return opens


def _call(function: str, *positional: object, **options: object) -> str:
    arguments = [str(each) for each in positional if each]
    arguments += [
        f"{key}={value}" for key, value in options.items() if value is not None
    ]
    return f"{function}({', '.join(arguments)})"


def _quoted(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_quoted(each) for each in value) + "]"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _named(kernel: KernelLike) -> str:
    if not (isinstance(kernel, Kernel) or callable(kernel)):
        raise NotAScenario(
            found=f"{type(kernel).__name__} {kernel!r} as a kernel",
            wanted="a callable or runtime.fallthrough",
        )
    return kernel_of(kernel, False).facts.name
