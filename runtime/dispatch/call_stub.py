"""Call stubs: the call of one operator as a function with its own parameters.

A call stub binds by Python's own rules for parameters, converts values that differ from
the default, joins the keysets, and runs the bound kernel that the entry caches for
them; it builds and scans no list of arguments.  This module generates its text:

    def call(self=_MISSING, other=_MISSING, /, *_rest, alpha=_MISSING, **_more):
        if _more:
            ...  # place the arguments passed by name
        if _WATCH.active or _rest:
            return _slow(*_written(_rest, _more, self, other, alpha))
        ...
        _bits = self.key_bits | other.key_bits
        ...
        _entry = _dispatcher.state.namespaces["core"]["core::add"]
        _kernel = _entry.memo[_key][_LOCAL.view][_bits]
        ...
        return _kernel(self, other, _2)

Rules:
- a call stub does the same as the slow path (`OperatorRef.call`), or uses it: in every
  unusual case (a watcher, a surplus argument, a value that does not fit, an entry of
  another definition) it calls `slow`, which raises the errors;
- the text depends on the schema alone; it is compiled once for each definition;
- all names in it except those of arguments begin with `_`, which names of arguments
  never do;
- `runtime.script.primitives.operator_calls` builds shorter functions from the same
  parts.

After an idea of singledispatch's and of CPython's own argument clinic: let the
interpreter bind.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import Any

from everyorder.runtime.base.codegen import block, generated
from everyorder.runtime.dispatch.watch import WATCH
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.schema.binding import presenters_of, returner, stored_default
from everyorder.runtime.schema.enums import EnumConstant
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Argument
from everyorder.runtime.schema.types import (
    ListType,
    OptionalType,
    TensorType,
    is_dispatch_type,
    unwrap_optional,
)
from everyorder.runtime.schema.values import MISMATCH, Converter, present, presenter

# make(dispatcher, key, resolve, slow) -> call stub
Maker = Callable[..., Callable[..., Any]]

# The default of parameters: the argument was not passed.
_MISSING = object()


def maker_of(schema: Schema, converters: Sequence[Converter]) -> Maker | None:
    """Compile `make(dispatcher, key, resolve, slow)`, which returns a call stub.

    `memo[key][view][bits]` of the published entry is a bound kernel, `resolve(bits)`
    creates one (None: use the slow path), and `slow(args, kwargs)` is the slow path.
    `converters` are those of the arguments.  None for a schema that cannot have such a
    function: one with surplus arguments, or with names that are not Python parameters.
    """
    arguments = schema.arguments
    names = [argument.name for argument in arguments]
    if schema.is_vararg or any(n.startswith("_") or iskeyword(n) for n in names):
        return None
    written = f"(_rest, _more, {', '.join(names)})"
    slow = f"return _slow(*_written{written})"
    twice = f"return _slow(*_written_twice{written})"
    positional = names[: schema.kwarg_only_start]
    body = [
        *block("if _more:", _placed(positional, twice, slow)),
        "if _WATCH.active or _rest:",
        f"    {slow}",
        *_converted(schema, slow),
        *joined(schema, slow),
        *linked(schema, slow),
        f"_result = _kernel({', '.join(map(passed, range(len(names)), arguments))})",
        *returned(schema),
    ]
    values = globals_of(schema, converters)
    return making(f"call of {schema.name}", _parameters(schema), body, values)


def making(
    kind: str, parameters: Sequence[str], body: Sequence[str], names: Mapping[str, Any]
) -> Maker:
    """Compile `make(dispatcher, key, resolve, slow)` from the body of a call."""
    call = block(f"def call({', '.join(parameters)}):", body)
    head = "def make(_dispatcher, _key, _resolve, _slow):"
    maker: Maker = generated(kind, block(head, [*call, "return call"]), names)
    return maker


def globals_of(schema: Schema, converters: Sequence[Converter]) -> dict[str, Any]:
    """Return the global names of the text."""
    values: dict[str, Any] = {
        "_AttributeError": AttributeError,
        "_KeyError": KeyError,
        "_LOCAL": LOCAL,
        "_MISMATCH": MISMATCH,
        "_MISSING": _MISSING,
        "_WATCH": WATCH,
        "_len": len,
        "_returns": returner(schema),
        "_tuple": tuple,
        "_type": type,
    }
    values["_written"] = _writer(schema, placed=True)
    values["_written_twice"] = _writer(schema, placed=False)
    for place, (turn, present_as) in enumerate(
        zip(converters, presenters_of(schema), strict=True)
    ):
        # A converted list is fresh already; only enum constants need a presenter.
        show = None if _is_list(schema.arguments[place]) else present_as
        values[f"_turn{place}"] = turn if show is None else _presenting(turn, show)
    for place, argument in enumerate(schema.arguments):
        if argument.has_default:
            values[f"_default{place}"] = present(
                argument.type, stored_default(argument)
            )
    return values


def _is_list(argument: Argument) -> bool:
    kind = unwrap_optional(argument.type)
    return isinstance(kind, ListType) and presenter(kind.element) is None


def _presenting(turn: Converter, show: Converter) -> Converter:
    """Return a conversion to what kernels see; enum constants stay as they are."""

    def convert(value: object) -> object:
        if isinstance(value, EnumConstant):
            converted = turn(value)
            return value if converted is not MISMATCH else MISMATCH
        converted = turn(value)
        return MISMATCH if converted is MISMATCH else show(converted)

    return convert


def _placed(names: list[str], twice: str, slow: str) -> list[str]:
    """Return the lines that place positional arguments passed by name.

    An argument passed twice, or unknown, goes to the slow path.  At the first name that
    is passed twice nothing was placed yet: all before it were passed by position, too.
    """
    lines = ["_known = 0"]
    for name in names:
        lines += [
            f"if {name!r} in _more:",
            f"    if {name} is not _MISSING:",
            f"        {twice}",
            f"    {name} = _more[{name!r}]",
            "    _known += 1",
        ]
    return [*lines, "if _known != _len(_more):", f"    {slow}"]


def _writer(
    schema: Schema, *, placed: bool
) -> Callable[..., tuple[tuple[Any, ...], Mapping[str, Any]]]:
    """Return a function that restores the arguments of a call as it was written.

    `placed` is true once arguments passed by name are in their places.
    """
    names = [argument.name for argument in schema.arguments]
    start = schema.kwarg_only_start

    def written(
        rest: tuple[Any, ...], more: Mapping[str, Any], *values: Any
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        named = {
            name: value
            for name, value in zip(names[start:], values[start:], strict=True)
            if value is not _MISSING
        }
        end = 0
        while end < start and values[end] is not _MISSING:
            if placed and names[end] in more:
                break
            end += 1
        return (*values[:end], *rest), {**more, **named}

    return written


def _parameters(schema: Schema) -> list[str]:
    parameters = [f"{argument.name}=_MISSING" for argument in schema.arguments]
    start = schema.kwarg_only_start
    positional = [*parameters[:start], "/"] if start else []
    return [*positional, "*_rest", *parameters[start:], "**_more"]


def passed(place: int, argument: Argument) -> str:
    """Return the name that holds the value as the kernel gets it."""
    required = not argument.has_default
    return argument.name if required and is_tensor(argument) else f"_{place}"


def is_tensor(argument: Argument) -> bool:
    """Return True if an argument is a tensor or an optional tensor."""
    return is_dispatch_type(argument.type) == "tensor"


def _converted(schema: Schema, slow: str) -> list[str]:
    """Return the lines that convert arguments, except required tensors.

    A default is copied if it is a list.
    """
    lines = []
    for place, argument in enumerate(schema.arguments):
        if is_tensor(argument):
            if argument.has_default:
                is_passed = f"{argument.name} is not _MISSING"
                value = f"{argument.name} if {is_passed} else _default{place}"
                lines.append(f"_{place} = {value}")
            continue
        if argument.has_default:
            copied = ".copy()" if isinstance(stored_default(argument), list) else ""
            missing = f"    _{place} = _default{place}{copied}"
        else:
            missing = f"    {slow}"
        lines += [
            f"if {argument.name} is _MISSING:",
            missing,
            "else:",
            f"    _{place} = _turn{place}({argument.name})",
            f"    if _{place} is _MISMATCH:",
            f"        {slow}",
        ]
    return lines


def joined(schema: Schema, slow: str) -> list[str]:
    """Return the lines that join the keysets of all tensors into `_bits`."""
    tensors = [
        (place, passed(place, argument), _may_be_none(argument))
        for place, argument in enumerate(schema.arguments)
        if is_tensor(argument)
    ]
    sure = [name for _, name, optional in tensors if not optional]
    lines = [f"_bits = {bits_of(sure) or '0'}"]
    for _, name, optional in tensors:
        if optional:
            lines += [f"if {name} is not None:", f"    _bits |= {name}.key_bits"]
    # A number that is accepted for a tensor, None, or a value that is not a tensor.
    failed = [f"    _{place} = _turn{place}({name})" for place, name, _ in tensors]
    for place, _, _ in tensors:
        failed += [f"    if _{place} is _MISMATCH:", f"        {slow}"]
    failed.append("    _bits = 0")
    for place, name, _ in tensors:
        failed += [
            f"    {name} = _{place}",
            f"    if _{place} is not None:",
            f"        _bits |= _{place}.key_bits",
        ]
    if tensors:
        lines = [*block("try:", lines), "except _AttributeError:", *failed]
    for place, argument in enumerate(schema.arguments):
        if is_dispatch_type(argument.type) == "list":
            lines += [
                f"for _each in _{place}:",
                "    if _each is not None:",
                "        _bits |= _each.key_bits",
            ]
    return lines


def bits_of(names: Iterable[str]) -> str:
    """Return the union of the keysets of arguments that are certainly tensors."""
    return " | ".join([f"{name}.key_bits" for name in names])


def linked(schema: Schema, slow: str) -> list[str]:
    """Return the lines that set `_kernel`: the bound kernel of the published entry."""
    namespace = schema.name.name.partition("::")[0]
    where = f"[{namespace!r}][{str(schema.name)!r}]"
    return [
        *block("try:", remembered(where, "_bits")),
        "except _KeyError:",
        "    _kernel = _resolve(_bits)",
        "    if _kernel is None:",
        f"        {slow}",
    ]


def remembered(where: str, bits: str) -> list[str]:
    """Return the lines that read the bound kernel cached for `bits` of an entry."""
    return [
        f"_entry = _dispatcher.state.namespaces{where}",
        f"_kernel = _entry.memo[_key][_LOCAL.view][{bits}]",
    ]


def _may_be_none(argument: Argument) -> bool:
    return isinstance(argument.type, OptionalType) or argument.has_default


def returned(schema: Schema) -> list[str]:
    """Return the lines that return the result.

    A tensor only needs its `key_bits` to be read; every other result is converted.
    """
    kinds = [each.type for each in schema.returns]
    if not kinds or schema.is_varret or any(kind != TensorType for kind in kinds):
        return ["return _returns(_result)"]
    if len(kinds) == 1:
        return [*LOOK, "return _result"]
    looks = [f"_result[{place}].key_bits" for place in range(len(kinds))]
    return [
        # `_returns` converts or rejects anything else than a tuple of that length.
        f"if _type(_result) is not _tuple or _len(_result) != {len(kinds)}:",
        "    return _returns(_result)",
        *block("try:", looks),
        *LOOK[2:],
        "return _result",
    ]


# Checks that a result is a tensor: only tensors have `key_bits`.
LOOK = (
    "try:",
    "    _result.key_bits",
    "except _AttributeError:",
    "    return _returns(_result)",
)
