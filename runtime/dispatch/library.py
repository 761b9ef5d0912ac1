"""Libraries: the interface to register definitions, kernels and fallbacks.

The calls that each kind of library allows:

======== ============= ======= ===== ==================== ============= kind     a
namespace   define  impl  fallback             dispatch_key ======== =============
======= ===== ==================== ============= DEF      has one       yes     yes   no
none FRAGMENT any number    yes     yes   no                   none IMPL     any number
no      yes   in namespace `_`     optional ======== ============= ======= =====
==================== =============

Rules:
- everything is checked before anything is registered, and one call registers all of its
  records or none; first the meaning of each argument is checked, then the rules of the
  library, then (`runtime.dispatch.transition`) the live registrations;
- a library owns its registrations: `close` ends them, and so does losing the last
  reference to the library, at the next registration or removal;
- a description in a dump is `debug`, else the kernel's name and the library's origin;
- a second kernel for a key that has one is allowed, with a warning before anything is
  registered, since the warning may be turned into an error.
"""

import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import FrameType
from typing import Any

from everyorder.runtime.base.codegen import is_text
from everyorder.runtime.base.registry import Closeable
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.kernel import (
    Kernel,
    KernelLike,
    description_of,
    fallback_for,
    kernel_for,
    text_of,
    wrong_argument,
)
from everyorder.runtime.dispatch.registration import (
    OwnedRegistrations,
    Registration,
    register_tokens,
    take_down,
)
from everyorder.runtime.dispatch.registration_record import (
    Claim,
    Definition,
    Fallback,
    Implementation,
    KernelSpec,
    OperatorSpec,
    RegistrationRecord,
    Reservation,
    read_definition,
    read_kernel,
    rule_for,
)
from everyorder.runtime.dispatch.transition import is_live
from everyorder.runtime.errors.registration import LibraryMisuse
from everyorder.runtime.keys import DispatchKey, fallback_keys, kernel_key
from everyorder.runtime.schema.parser import (
    parse_name,
    parse_schema,
    parse_schema_or_name,
)
from everyorder.runtime.schema.schema import Schema, check_definition
from everyorder.runtime.schema.signature import (
    AliasKind,
    OperatorName,
    parse_alias_kind,
)
from everyorder.runtime.schema.tokenizer import KEYWORDS

KINDS = ("DEF", "FRAGMENT", "IMPL")
# Not a namespace of operators: the one of fallbacks, which serve all namespaces.
WILDCARD = "_"
# Namespaces whose operators the script compiler owns.
RESERVED = ("prim",)
# Arguments cached per library: repeated calls are few, and more only costs memory.
REMEMBERED = 1024

KeyLike = DispatchKey | str
# Types of dispatch keys that a key of `Library._kernels` may contain.
_PLAIN_KEYS = frozenset((str, DispatchKey, type(None)))


def check_kind(namespace: str, kind: str, key: DispatchKey | None) -> None:
    """Check that a library can have these arguments.

    Raises:
        LibraryMisuse: it cannot; the error names the reason and the remedy.
    """
    call = f"Library({namespace!r}, {kind!r})"
    if kind not in KINDS:
        reason = f"{kind!r} is not a kind of library"
        remedy = f"Kinds: {', '.join(KINDS)}."
    elif kind == "IMPL" and namespace == WILDCARD:
        return
    elif namespace == WILDCARD:
        reason = f"a {kind} library needs a namespace of its own"
        remedy = f"Only an IMPL library can be in {WILDCARD!r}, for fallbacks."
    elif not (namespace.isidentifier() and namespace.isascii()):
        reason = f"{namespace!r} is not an identifier"
        remedy = "A namespace consists of letters, digits and underscores."
    elif namespace in KEYWORDS:
        reason = f"{namespace!r} is a keyword of the schema language"
        remedy = "Choose another namespace: no schema could name this one."
    elif kind == "IMPL":
        return
    elif namespace in RESERVED:
        reason = f"namespace {namespace!r} is reserved"
        remedy = "Choose another namespace; an IMPL library may use this one."
    elif key is not None:
        reason = f"a {kind} library has no dispatch key"
        remedy = "Name the key in impl(), or open an IMPL library for it."
    else:
        return
    raise LibraryMisuse(code="LibraryRefused", call=call, reason=reason, remedy=remedy)


def origin_of_caller(depth: int = 2) -> str:
    """Return the line that called the caller of this function (2), or further out."""
    frame = sys._getframe(depth)
    return f"registered at {frame.f_code.co_filename}:{frame.f_lineno}"


def key_of(key: KeyLike) -> DispatchKey:
    """Return the key that an argument denotes.

    Raises `LookupFailed` for a text that names no key, `LibraryMisuse` for another
    type.
    """
    if isinstance(key, DispatchKey):
        return key
    return DispatchKey.parse(text_of("dispatch_key", key))


def tags_of(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags of a definition, sorted.  Raises `LibraryMisuse` for one text."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise wrong_argument("tags", "a list of texts", tags)
    return tuple(sorted({text_of("tags", tag) for tag in tags}))


def schema_of(
    call: str, schema: str | Schema, alias_analysis: str, kernel: Kernel | None
) -> Schema:
    """Return the schema of a definition, with the alias kind and the name as written.

    Raises `SchemaSyntaxError`, `SchemaError`, and `LibraryMisuse` for a name whose
    kernel is not annotated.
    """
    if isinstance(schema, Schema):
        if not alias_analysis:
            return schema
        chosen = parse_alias_kind(text_of("alias_analysis", alias_analysis))
        return schema.with_alias_kind(chosen)
    text_of("schema", schema)
    kind = parse_alias_kind(text_of("alias_analysis", alias_analysis))
    if kernel is None:
        return parse_schema(schema, type_variables=False).with_alias_kind(kind)
    parsed = parse_schema_or_name(schema, type_variables=False)
    if isinstance(parsed, Schema):
        return parsed.with_alias_kind(kind)
    if kernel.facts.inferred is None:
        raise LibraryMisuse(
            code="CannotInfer", call=call, operator=schema, kernel=kernel.facts.name
        )
    inferred = kernel.facts.inferred.clone_with_name(parsed)
    return inferred.with_alias_kind(AliasKind.CONSERVATIVE)


class Library(Closeable):
    """A group of registrations in one namespace, ended together.

    Args:
        ns: the namespace; `"_"` for fallbacks.
        kind: `"DEF"`, `"FRAGMENT"` or `"IMPL"`, see the table above.
        dispatch_key: of an IMPL library, the default key of its kernels.
        dispatcher: the default dispatcher if None.
        origin: dumps show it instead of "registered at FILE:LINE".

    Raises:
        LibraryMisuse: the arguments do not fit together.
        Conflict: a DEF library of the namespace is live.
    """

    __slots__ = (
        "__weakref__",
        "_closed",
        "_definitions",
        "_dispatcher",
        "_kernels",
        "_ledger",
        "key",
        "kind",
        "namespace",
        "origin",
    )

    def __init__(
        self,
        ns: str,
        kind: str = "DEF",
        dispatch_key: KeyLike | None = None,
        *,
        dispatcher: Dispatcher | None = None,
        origin: str | None = None,
    ) -> None:
        self._ledger: OwnedRegistrations = {}
        self._closed = True
        self.namespace = text_of("ns", ns)
        self.kind = kind
        key = None if dispatch_key is None else key_of(dispatch_key)
        self.key = None if key is DispatchKey.Undefined else key
        if origin is None:
            origin = origin_of_caller()
        self.origin = text_of("origin", origin)
        self._dispatcher = dispatcher or default_dispatcher()
        # Arguments of earlier calls, and their readings, which do not refer to kernels.
        self._definitions: dict[Any, OperatorSpec] = {}
        self._kernels: dict[Any, tuple[KernelSpec, ...]] = {}
        check_kind(ns, kind, self.key)
        self._closed = False
        self._dispatcher.own(self, self._ledger)
        if kind == "DEF":
            self._register((Claim(ns, origin),))

    def define(
        self,
        schema: str | Schema,
        alias_analysis: str = "",
        *,
        kernel: KernelLike | None = None,
        tags: Iterable[str] = (),
        debug: str | None = None,
    ) -> Registration:
        """Define an operator, optionally with a kernel for all backends.

        Args:
            schema: a schema; or a bare name, if `kernel` is annotated.
            alias_analysis: `""` (FROM_SCHEMA), `"FROM_SCHEMA"`, `"CONSERVATIVE"` or
                `"PURE_FUNCTION"`; a parsed `Schema` keeps its kind if it is `""`.
            kernel: registered at CompositeImplicitAutograd, together with the schema.
            tags: of `runtime.schema.schema.TAGS`; `defined_tensors` rejects None where
                the schema says `Tensor`, `numbers_as_tensors` accepts numbers there,
                `integers_only` rejects a bool where it says `int`.
            debug: describes the kernel; without a kernel, the definition.

        Raises:
            SchemaSyntaxError, SchemaError: the schema is malformed, or contradicts
                itself or its tags.
            LibraryMisuse: not in this kind of library or namespace; no schema to infer.
            Conflict: the operator is defined, or a live kernel does not fit.
        """
        arguments = (schema, alias_analysis, tags, debug)
        plain = kernel is None and tags == () and type(schema) is str
        if plain and not self._closed:
            spec = self._definitions.get(arguments)
            if spec is not None:
                return self._register((Definition(spec),))
        call = f"define({str(schema)!r})"
        self._check_open(call)
        if self.kind == "IMPL":
            raise self._refused(
                call,
                "an IMPL library defines no operators",
                "Define it in a library of kind 'DEF' or 'FRAGMENT'.",
            )
        default = None if kernel is None else kernel_for(call, kernel, False)
        full = self._complete(call, schema_of(call, schema, alias_analysis, default))
        check_definition(full, sorted_tags := tags_of(tags))
        origin = self.origin if default or debug is None else text_of("debug", debug)
        reading = read_definition(full, origin, sorted_tags)
        if plain:
            _limit(self._definitions)
            self._definitions[arguments] = reading
        if default is None:
            return self._register((Definition(reading),))
        key = kernel_key(self.key or DispatchKey.Undefined)
        text = description_of(default, debug, self.origin)
        token = Implementation(
            read_kernel(full.name, key, default.facts, text, default.with_keyset),
            default,
        )
        if self._dispatcher.warns_of_overrides:
            warn_of_overrides(self._dispatcher, (token,))
        return self._register((Definition(reading), token))

    def impl(
        self,
        op: str | OperatorName | OperatorHandle,
        kernel: KernelLike,
        dispatch_key: KeyLike | Iterable[KeyLike] | None = None,
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
        debug: str | None = None,
    ) -> Registration:
        """Register a kernel for an operator, which may not be defined yet.

        Args:
            op: the operator, with or without the namespace of this library.
            kernel: an annotated function gets every argument; any other callable
                gets the arguments that differ from their defaults; see
                `runtime.dispatch.kernel`.
            dispatch_key: a key, or several; the library's if None; if it has none,
                CompositeImplicitAutograd.
            with_keyset: the kernel takes the keyset of the call first.
            allow_override: False refuses a key that already has a kernel.
            debug: describes the kernel in dumps.

        Raises:
            LibraryMisuse: the name, the key or the kernel is not allowed here.
            LookupFailed, KeyMisuse: no kernel can be registered at that key.
            Conflict: the kernel does not fit the schema or the other typed kernels.
        """
        if self._closed:
            self._check_open(f"impl({str(op)!r}, ...)")
        if not isinstance(kernel, Kernel) or with_keyset:
            kernel = kernel_for(f"impl({str(op)!r}, ...)", kernel, with_keyset)
        readings = None
        facts, takes_keyset = kernel.facts, kernel.with_keyset
        arguments = (op, dispatch_key, facts, takes_keyset, debug)
        plain = type(op) is str and type(dispatch_key) in _PLAIN_KEYS
        if plain:
            readings = self._kernels.get(arguments)
        if readings is None:
            name = self._name(f"impl({str(op)!r}, ...)", op)
            text = description_of(kernel, debug, self.origin)
            readings = tuple(
                [
                    read_kernel(name, key, facts, text, takes_keyset)
                    for key in self._keys(op, dispatch_key)
                ]
            )
            if plain:
                _limit(self._kernels)
                self._kernels[arguments] = readings
        tokens = tuple([Implementation(reading, kernel) for reading in readings])
        if allow_override and self._dispatcher.warns_of_overrides:
            warn_of_overrides(self._dispatcher, tokens)
        return self._register(tokens, not allow_override)

    def fallback(
        self,
        kernel: KernelLike,
        dispatch_key: KeyLike | None = None,
        *,
        with_keyset: bool = False,
        debug: str | None = None,
    ) -> Registration:
        """Register a kernel for every operator without a kernel for the key.

        It is called `kernel(operator, *args, **kwargs)`, after the keyset if
        `with_keyset`, or `linked`.  An alias key means all its runtime keys.

        Raises:
            LibraryMisuse: not an IMPL library of namespace `_`, or without any key.
            KeyMisuse: the key cannot have fallbacks.
            Conflict: one of the keys has a fallback; none is registered.
        """
        self._check_open(call := "fallback(...)")
        key = self.key if dispatch_key is None else key_of(dispatch_key)
        if self.kind != "IMPL" or self.namespace != WILDCARD or key is None:
            raise self._refused(
                call,
                "a fallback serves one dispatch key in all namespaces",
                f"Use Library({WILDCARD!r}, 'IMPL', KEY).fallback(kernel).",
            )
        self._check_key(call, key)
        wrapped = fallback_for(call, kernel, with_keyset)
        text = description_of(wrapped, debug, self.origin)
        return self._register((Fallback(fallback_keys(key), wrapped, text),))

    def rule(
        self,
        op: str | OperatorName | OperatorHandle,
        cls: type,
        fn: Callable[..., Any],
        *,
        debug: str | None = None,
    ) -> Registration:
        """Let `fn` handle an operator for modes or tensors of exactly the class `cls`.

        The operator may not be defined yet; see `runtime.torch_dispatch.fallback`.
        Raises `LibraryMisuse`, and `Conflict` if the class has a rule for it.
        """
        self._check_open(call := f"rule({str(op)!r}, ...)")
        name = self._name(call, op)
        return self._register((rule_for(name, cls, fn, debug, self.origin),))

    def reserve(self, op: str) -> Registration:
        """Keep the name of an operator alive, without schema and kernel."""
        self._check_open(call := f"reserve({op!r})")
        return self._register((Reservation(self._name(call, op), self.origin),))

    @property
    def tokens(self) -> tuple[RegistrationRecord, ...]:
        """Return the live records of this library, oldest first."""
        owned = [token for tokens in list(self._ledger.values()) for token in tokens]
        state = self._dispatcher.state
        return tuple([token for token in owned if is_live(state, token)])

    def close(self) -> None:
        """End every registration of this library; closing twice is safe.

        Raises:
            LibraryMisuse: called by a listener; nothing ends.
            ExceptionGroup: listeners raised; everything ended all the same.
        """
        self._dispatcher.check_writable("Library.close()")
        self._closed = True
        groups = list(self._ledger.items())
        if groups:
            owned = [token for _, tokens in groups for token in tokens]
            keys = [key for key, _ in groups]
            take_down(self._dispatcher, self._ledger, keys, owned)
        self._dispatcher.disown(self)

    # torch's name for it.
    _destroy = close

    def _register(
        self, tokens: tuple[RegistrationRecord, ...], exclusive: bool = False
    ) -> Registration:
        registration = register_tokens(
            self._dispatcher, self._ledger, tokens, exclusive
        )
        if self._closed:  # by another thread, which may not have seen these tokens
            take_down(self._dispatcher, self._ledger, (registration.key,), tokens)
            self._check_open("a registration")
        return registration

    def _check_open(self, call: str) -> None:
        if self._closed:
            raise LibraryMisuse(code="LibraryClosed", call=call, library=repr(self))

    def _name(self, call: str, op: str | OperatorName | OperatorHandle) -> OperatorName:
        if isinstance(op, OperatorHandle):
            written = op.name
        else:
            written = parse_name(op) if isinstance(op, str) else op
        if not isinstance(written, OperatorName):
            raise self._refused(
                call,
                f"{type(op).__name__} is not the name of an operator",
                "Pass its name as text, or its handle.",
            )
        if self.namespace == WILDCARD:
            raise self._refused(
                call,
                "an operator belongs to a namespace",
                "Use a library of the operator's namespace.",
            )
        return self._qualified(call, written)

    def _qualified(self, call: str, name: OperatorName) -> OperatorName:
        if name.namespace not in (None, self.namespace):
            raise LibraryMisuse(
                code="NamespaceMismatch",
                call=call,
                given=name.namespace or "",
                namespace=self.namespace,
                library=repr(self),
            )
        return name.with_namespace(self.namespace)

    def _complete(self, call: str, schema: Schema) -> Schema:
        name = self._qualified(call, schema.name)
        # `replace`, as `clone_with_name` would drop the alias kind.
        return schema if name == schema.name else replace(schema, name=name)

    def _keys(self, op: object, argument: Any) -> list[DispatchKey]:
        """Return the distinct keys of a kernel; `Undefined` means the library's key."""
        call = f"impl({str(op)!r}, ...)"
        one = isinstance(argument, str) or not isinstance(argument, Iterable)
        keys = [
            DispatchKey.Undefined if key is None else key_of(key)
            for key in ((argument,) if one else argument)
        ]
        if not keys:
            raise self._refused(
                call,
                "the list of dispatch keys is empty",
                "Name one key at least, or pass no list.",
            )
        for key in keys:
            self._check_key(call, key)
        own = self.key or DispatchKey.Undefined
        resolved = (kernel_key(own if k is DispatchKey.Undefined else k) for k in keys)
        return list(dict.fromkeys(resolved))

    def _check_key(self, call: str, key: DispatchKey) -> None:
        if self.key is not None and key not in (self.key, DispatchKey.Undefined):
            raise LibraryMisuse(
                code="KeyMismatch",
                call=call,
                given=key.name,
                key=self.key.name,
                library=repr(self),
            )

    def _refused(self, call: str, reason: str, remedy: str) -> LibraryMisuse:
        return LibraryMisuse(
            code="CallRefused",
            call=call,
            library=repr(self),
            reason=reason,
            remedy=remedy,
        )

    def __repr__(self) -> str:
        key = f", {self.key.name!r}" if self.key else ""
        return f"Library({self.namespace!r}, {self.kind!r}{key}) {self.origin}"


def _limit(remembered: dict[Any, Any]) -> None:
    """Empty a full cache: if every call is a different one, it does not pay off."""
    if len(remembered) >= REMEMBERED:
        remembered.clear()


class KernelOverridden(UserWarning):
    """A kernel was registered where the operator already had one for that key."""


def warn_of_overrides(
    dispatcher: Dispatcher, tokens: tuple[Implementation, ...]
) -> None:
    """Warn the first caller outside of the runtime, except of overridden Meta kernels.

    Registrations of lost libraries are removed before, as they are not kernels any
    more.
    """
    if dispatcher.dropped:
        dispatcher.drain()
    reading = tokens[0].reading
    entry = dispatcher.state.find(reading.namespace, reading.text)
    for token in tokens:
        kernels = entry.implementations.get(token.key) if entry else None
        if kernels is not None and token.key is not DispatchKey.Meta:
            warnings.warn(
                f"{token.operator} gets another kernel for {token.key.name}:\n"
                f"  until now: {kernels[0].debug}\n  from now:  {token.debug}",
                KernelOverridden,
                stacklevel=levels_to_caller(),
            )


def levels_to_caller() -> int:
    """Return how many frames above the caller the first one outside the runtime is.

    Frames of generated functions are inside.
    """
    runtime = __name__.partition(".")[0]
    level = 1
    frame: FrameType | None = sys._getframe(1)
    # In a thread, or at exit, all frames may be those of the runtime.
    while frame is not None and (
        _package(frame) == runtime or is_text(frame.f_globals)
    ):
        level, frame = level + 1, frame.f_back
    return level


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]
