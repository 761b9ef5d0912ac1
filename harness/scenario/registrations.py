"""The dispatcher's steps, named and written as on `runtime.Library`.

Operators are written with their namespace, and every step has a library of its own,
opened for that namespace.  A library of kind DEF is part of the
step, because it claims the namespace; the others claim nothing and stay open.

A kernel is wrapped so that the system can tell which kernels a call ran.  The wrapper
has the facts of the kernel, so the dispatcher treats it as it treats the kernel.
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
    """`Library.define`: `define("demo::add(Tensor x, Tensor y) -> Tensor")`."""
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
    """`Library.impl`: `impl("demo::add", cpu_add, "CPU")`."""
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
        # `run` takes the keyset by itself, if it does.
        return library.impl(
            op, run, dispatch_key, allow_override=allow_override, debug=debug
        )

    name = _with_namespace(parse_name(op))
    made = _step(text, name, kind, library_key, kernel, with_keyset, debug, register)
    if debug is None:
        return made
    at = dispatch_key or library_key or ""
    keys = (at,) if isinstance(at, str) else at
    return replace(made, kernels=tuple(f"{key} of {op}: {debug}" for key in keys))


def fallback(
    kernel: KernelLike,
    dispatch_key: str,
    *,
    with_keyset: bool = False,
    debug: str | None = None,
) -> Step:
    """`Library.fallback`: `fallback(runtime.fallthrough, "Tracer")`."""
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
    """`Library.reserve`: keeps the name of an operator alive."""

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
    """`Library(ns, kind, dispatch_key)` itself: claims the namespace if it is DEF."""
    text = _call(
        "library", _quoted(ns), _quoted(kind), dispatch_key and _quoted(dispatch_key)
    )

    def prepare(target: Dispatcher, origin: str) -> Perform:
        return partial(
            Library, ns, kind, dispatch_key, dispatcher=target, origin=origin
        )

    return Step(text, prepare, owner="dispatcher")


def merges_alias_kinds() -> Step:
    """A dispatcher with the 2020 rule for second definitions; to be given.

    It is a setting and no registration: undoing it does nothing.
    """

    def prepare(target: Dispatcher, origin: str) -> Perform:
        def perform() -> Closable:
            target.state = target.state._replace(merges_alias_kinds=True)
            return _Several([])

        return perform

    return Step("merges_alias_kinds()", prepare, owner="dispatcher")


class Refused(Exception):
    """A listener does not want the operator that it is told of."""


class KnowingListener:
    """A listener that knows the operators that it was told of, and not untold.

    Told of one that it `refuses`, it raises `Refused`, which abandons the
    step.
    """

    def __init__(self, refuses: Collection[str] = ()) -> None:
        self.names: list[str] = []
        self.refuses = refuses

    def on_operator_registered(self, name: OperatorName, schema: Schema) -> None:
        """Remember the schema, unless it is refused."""
        if str(name) in self.refuses:
            raise Refused(str(name))
        self.names.append(str(schema))

    def on_operator_deregistered(self, name: OperatorName, schema: Schema) -> None:
        """Forget the schema."""
        self.names.remove(str(schema))

    def shown(self) -> str:
        """What it knows, sorted: which schemas are live, not how they came."""
        return ", ".join(sorted(self.names)) or "nothing"


def listen(*, refuses: Collection[str] = ()) -> Step:
    """`Dispatcher.add_listener`, with a listener that keeps a list of schemas.

    Told of an operator that it `refuses`, it raises.
    """

    def prepare(target: Dispatcher, origin: str) -> Perform:
        recorder: LabelRecorder | None = getattr(target, "recorder", None)

        def perform() -> Closable:
            made = KnowingListener(refuses)
            if recorder is not None:
                recorder.watch(f"listener ({origin})", made)
            return target.add_listener(made, origin)

        return perform

    text = _call("listen", refuses=_quoted(list(refuses)) if refuses else None)
    return Step(text, prepare, owner="dispatcher")


class _Several:
    """The handles of several steps done together; ends them last first."""

    __slots__ = ("__weakref__", "_held")

    def __init__(self, held: list[Closable]) -> None:
        self._held = held

    @property
    def tokens(self) -> tuple[RegistrationRecord, ...] | None:
        """What is live by all of them; None if one of them does not say."""
        tokens: list[RegistrationRecord] = []
        for each in self._held:
            held = getattr(each, "tokens", None)
            if held is None:
                return None
            tokens += held
        return tuple(tokens)

    def close(self) -> None:
        while self._held:
            self._held.pop().close()


def together(*steps: Step) -> Step:
    """Several steps as one; if one of them fails, those before it are ended."""

    def prepare(target: Any, origin: str) -> Perform:
        performs = [each.prepare(target, origin) for each in steps]

        def perform() -> Closable:
            held: list[Closable] = []
            try:
                for each in performs:
                    held.append(each())  # noqa: PERF401  # what was held when one fails
            except BaseException:
                _Several(held).close()
                raise
            return _Several(held)

        return perform

    names = tuple(dict.fromkeys(name for each in steps for name in each.operators))
    kernels = tuple(dict.fromkeys(each for step in steps for each in step.kernels))
    text = f"together({', '.join(each.text for each in steps)})"
    has_effects = any(each.has_effects for each in steps)
    owners = {each.owner for each in steps}
    owner = owners.pop() if len(owners) == 1 else ""
    return Step(text, prepare, names, kernels, has_effects, owner)


def shared(*steps: Step) -> tuple[Step, ...]:
    """The same steps, which register by one library where they ask for equal ones.

    It is opened for the first of them, whose name it has, and stays open, so a DEF
    library, which its own step closes, cannot be shared.
    """
    group = object()

    def sharing(each: Step) -> Step:
        def prepare(target: Any, origin: str) -> Perform:
            effects = effects_of(target)
            first, held = effects.libraries.setdefault(group, (origin, {}))

            def opens(*asked: Any, **named: Any) -> Library:
                if asked not in held:
                    held[asked] = Library(*asked, **named)
                return held[asked]

            with effects.opening(opens):
                return each.prepare(target, first)

        return replace(each, text=f"shared({each.text})", prepare=prepare)

    return tuple(sharing(each) for each in steps)


def operator_of(schema: str | Schema) -> OperatorName:
    """The name of the operator that a schema, or a bare name, speaks of."""
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
    """A step in a library of its own; a DEF library is opened by the step itself."""
    namespace = "_" if name is None else name.namespace or "_"

    def prepare(target: Dispatcher, origin: str) -> Perform:
        recorder: LabelRecorder | None = getattr(target, "recorder", None)
        made = None if kernel is None else kernel_of(kernel, with_keyset)
        opened = partial(
            opener(target),
            namespace,
            kind,
            library_key,
            dispatcher=target,
            origin=origin,
        )

        # Another kernel each time: what is undone must die.
        run = kernel_maker(made, origin, recorder, debug) if made else _nothing
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
    return Step(text, prepare, names, owner="dispatcher")


def _nothing() -> None:
    """The kernel of a step that has none."""


def opener(target: Any) -> Callable[..., Library]:
    """What opens the libraries of the steps that are prepared now."""
    effects = getattr(target, "effects", None)
    opens: Callable[..., Library] = Library if effects is None else effects.opens
    return opens


def _call(function: str, *positional: object, **named: object) -> str:
    shown = [str(each) for each in positional if each]
    shown += [f"{key}={value}" for key, value in named.items() if value is not None]
    return f"{function}({', '.join(shown)})"


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
