"""The schema of an operator: the contract of its calls, and its validity.

A `Schema` is a `Signature` that also answers how a call binds, which arguments a Python
handler gets, and which results may alias, or contain, which arguments.
`check_definition` checks that an operator can be defined with one, and with tags:
properties of the operator that its definition asserts.

Rules of sharing:
- two values can alias only if their types have a shared type in common, and do so only
  if their alias sets after the call intersect;
- a set that annotates the elements of a list applies to the list, too: `Tensor(a) x`
  may be an element of `Tensor(a)[]` (ours; upstream does so for wildcards only);
- tuples, futures, awaits and references only contain memory: they share that of their
  elements;
- an object contains its attributes;
- a type about which nothing is known shares or contains anything: a variable, a list of
  one, `Any`, an interface, a class whose declaration is not sealed or that has none;
  a function is not memory, but may contain anything.

Rule of definitions: conditions that the grammar cannot express are checked here;
schemas built by hand are checked here as well, so conditions of the parser are checked
again.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.schema import SchemaError
from everyorder.runtime.schema.binding import bind
from everyorder.runtime.schema.declared import (
    InterfaceType,
    ModuleType,
    ScriptClassType,
)
from everyorder.runtime.schema.defaults import spread, stripper
from everyorder.runtime.schema.signature import WILDCARD, AliasKind, Argument, Signature
from everyorder.runtime.schema.subtyping import variables
from everyorder.runtime.schema.types import (
    NAMED_BASES,
    PROGRAM_BASES,
    AnyClassType,
    AnyType,
    CapsuleType,
    ClassType,
    DictType,
    FunctionType,
    GeneratorType,
    ListType,
    OptionalType,
    PyObjectType,
    StorageType,
    TensorType,
    Type,
    TypeVariable,
    UnionType,
)

# Ours: a `Tensor` argument may be a number.
NUMBERS_AS_TENSORS = "numbers_as_tensors"
# Ours: None, the undefined tensor, is rejected as a `Tensor` and in a `Tensor[]`.
DEFINED_TENSORS = "defined_tensors"
# Ours: a bool is rejected as an `int` and in an `int[]`.
INTEGERS_ONLY = "integers_only"
# Ours: a call whose arguments fit never raises.
TOTAL = "total"

# Source: the tags of upstream 2.13, and four additions.
TAGS: tuple[str, ...] = (
    "core",
    "cudagraph_unsafe",
    "data_dependent_output",
    DEFINED_TENSORS,
    "dynamic_output_shape",
    "flexible_layout",
    "generated",
    "inplace",
    "inplace_view",
    INTEGERS_ONLY,
    "maybe_aliasing_or_mutating",
    "needs_contiguous_strides",
    "needs_exact_strides",
    "needs_fixed_stride_order",
    "nondeterministic_bitwise",
    "nondeterministic_seeded",
    NUMBERS_AS_TENSORS,
    "out",
    "out_variant",
    "pointwise",
    "pt2_compliant_tag",
    "reduction",
    TOTAL,
    "view_copy",
)

# Bits in the set of arguments that a call scans for tensors; source: upstream's limit.
MOST_ARGUMENTS = 64


class Schema(Signature):
    """A function signature of the schema language, with the rules of its calls."""

    __slots__ = ()

    def may_alias(self, argument: int, result: int) -> bool:
        """Return True if that result may share memory with that argument.

        Raises:
            IndexError: there is no such argument or result.
        """
        return may_alias(self.arguments[argument], self.returns[result])

    def may_contain_alias(self, argument: int, result: int) -> bool:
        """Return True if either may also contain, as an element, memory of the other.

        Raises:
            IndexError: there is no such argument or result.
        """
        return may_contain_alias(self.arguments[argument], self.returns[result])

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return every argument of the call, as kernels see them: positional and named.

        Values are converted, defaults are filled in, enum constants are objects and
        lists are fresh; surplus values of a schema with `...` follow the positional
        arguments.

        Raises:
            CallError: the call does not fit; its leaf says why.
        """
        positional, named = self.fill_defaults(args, kwargs)
        return [*positional], named

    def fill_defaults(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return `bind` as a call: the inverse of `strip_defaults`.

        Raises as `bind`.
        """
        return spread(self, bind(self, args, kwargs))

    def strip_defaults(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the call as a Python handler gets it: without values at their default.

        The longest tail of positional arguments at their defaults is removed, and every
        such keyword-only argument; the rest is as in `bind`.

        Raises as `bind`.
        """
        return stripper(self)(bind(self, args, kwargs))


_ANYTHING = frozenset({AnyType})
_NOTHING: frozenset[Type] = frozenset()
# Types that may contain anything; sealed declarations are handled before.
_UNKNOWN = (TypeVariable, ClassType, ScriptClassType, ModuleType, InterfaceType)
# Base type -> the types under which its values can be shared; a storage is memory of
# tensors.
_SHARED: dict[Type, frozenset[Type]] = {
    **dict.fromkeys((*NAMED_BASES.values(), *PROGRAM_BASES.values()), _NOTHING),
    TensorType: frozenset({TensorType}),
    StorageType: frozenset({StorageType, TensorType}),
    GeneratorType: frozenset({GeneratorType}),
    CapsuleType: _ANYTHING,
    PyObjectType: _ANYTHING,
    AnyType: _ANYTHING,
    AnyClassType: _ANYTHING,
}


def may_alias(argument: Argument, result: Argument) -> bool:
    """Return True if the two may be the same memory after the call."""
    if argument.alias is None or result.alias is None:
        return False
    if not _meet(_shared(argument.fake_type), _shared(result.fake_type)):
        return False
    return bool(set(argument.alias.after) & set(result.alias.after))


def may_contain_alias(argument: Argument, result: Argument) -> bool:
    """Return True if either may be, or contain as an element, memory of the other."""
    if may_alias(argument, result):
        return True
    left, right = _shared(argument.fake_type), _shared(result.fake_type)
    left_inner = _contained(argument.fake_type)
    right_inner = _contained(result.fake_type)
    if (argument.sets_after & result.sets_after) - {WILDCARD}:
        # One set, of the values themselves or of their elements.
        return _meet(left | left_inner, right | right_inner)
    if argument.alias and argument.alias.is_wildcard_after and _meet(left, right_inner):
        return True
    if result.alias and result.alias.is_wildcard_after and _meet(right, left_inner):
        return True
    return _meet(left_inner, right_inner)


def _meet(left: frozenset[Type], right: frozenset[Type]) -> bool:
    """Return True if a value can be shared under a type of both."""
    if AnyType in left or AnyType in right:
        return bool(left and right)
    return not left.isdisjoint(right)


def _shared(type: Type) -> frozenset[Type]:  # noqa: A002  # the field's own word
    """Return the types under which a value of `type` can be shared; empty for plain."""
    shared = _SHARED.get(type)
    if shared is not None:
        return shared
    if isinstance(type, TypeVariable | InterfaceType):
        return _ANYTHING
    if isinstance(type, ListType | DictType):
        # With variables, a list of anything.
        return _ANYTHING if variables(type) else frozenset({type})
    if isinstance(type, ClassType | ScriptClassType | ModuleType):
        return frozenset({type})
    return _all_shared(type.parts)


def _all_shared(types: Iterable[Type]) -> frozenset[Type]:
    return _NOTHING.union(*map(_shared, types))


def _contained(type: Type) -> frozenset[Type]:  # noqa: A002  # the field's own word
    """Return the types under which contents of a `type`, at any depth, are shared."""
    contained: set[Type] = set()
    visited: set[Type] = set()
    todo = [type]
    while todo:
        outer = todo.pop()
        if outer in visited:
            continue
        visited.add(outer)
        elements = _elements(outer)
        contained |= _all_shared(elements)
        todo += elements
        if isinstance(outer, OptionalType | UnionType):
            todo += outer.parts
    return frozenset(contained)


def _elements(type: Type) -> tuple[Type, ...]:  # noqa: A002  # the field's own word
    """Return the types of the direct contents of a value of `type`."""
    if isinstance(type, ScriptClassType | ModuleType) and type.declaration.is_sealed:
        return tuple(type.declaration.attributes.values())
    if isinstance(type, _UNKNOWN) or _SHARED.get(type) is _ANYTHING:
        return (AnyType,)
    if type is FunctionType:
        return (AnyType,)
    return () if isinstance(type, OptionalType | UnionType) else type.parts


def check_definition(schema: Schema, tags: tuple[str, ...] = ()) -> None:
    """Check that an operator can be defined with `schema` and `tags`.

    Raises:
        SchemaError: there are more than `MOST_ARGUMENTS`; a name is repeated; or
            arguments, defaults and `...` are in an order in which no call could pass
            them; or the alias kind is PURE_FUNCTION, but an argument or result has an
            alias annotation; or as for `check_tags`.
    """
    count = len(schema.arguments)
    if count > MOST_ARGUMENTS:
        operator = str(schema.name)
        raise SchemaError(
            code="TooManySchemaArguments",
            operator=operator,
            count=count,
            limit=MOST_ARGUMENTS,
        )
    fault = _order_fault(schema)
    if fault is not None:
        raise SchemaError(
            code="ArgumentOrder", schema=str(schema), argument=fault[0], fault=fault[1]
        )
    if schema.alias_kind is AliasKind.PURE_FUNCTION:
        for argument in (*schema.arguments, *schema.returns):
            if argument.alias is not None:
                raise SchemaError(
                    code="ImpureFunction", schema=str(schema), annotated=str(argument)
                )
    check_tags(schema, tags)


def _order_fault(schema: Schema) -> tuple[str, str] | None:
    """Return the first argument out of order and what is wrong with it."""
    names: set[str] = set()
    defaulted = kwarg_only = False
    for argument in schema.arguments:
        if argument.name in names:
            return argument.name, "has the name of another argument"
        if kwarg_only and not argument.kwarg_only:
            return argument.name, "is positional, but follows a keyword-only argument"
        if defaulted and not argument.has_default and not argument.kwarg_only:
            return argument.name, "has no default, but follows one that has"
        if schema.is_vararg and argument.has_default:
            return argument.name, "has a default, but `...` allows none"
        names.add(argument.name)
        defaulted |= argument.has_default
        kwarg_only |= argument.kwarg_only
    return None


def check_tags(schema: Schema, tags: tuple[str, ...]) -> None:
    """Check that every tag exists and that the schema has the shape that it demands.

    Raises:
        SchemaError: there is no such tag, or the schema is not of the shape that `out`
            or `inplace` demands.
    """
    for tag in tags:
        if tag not in TAGS:
            raise SchemaError(code="UnknownTag", found=tag, near=nearest(tag, TAGS))
    for tag, fault_of in (("out", _out_fault), ("inplace", _inplace_fault)):
        fault = fault_of(schema) if tag in tags else None
        if fault is not None:
            raise SchemaError(
                code="TagMismatch", tag=tag, schema=str(schema), fault=fault
            )


def _out_fault(schema: Schema) -> str | None:
    """Check that results are exactly the written keyword-only tensors, in order."""
    written = [argument for argument in schema.arguments if argument.is_write]
    if not written:
        return "it writes to no argument"
    for argument in written:
        if not argument.kwarg_only or argument.type != TensorType:
            return f"it writes to `{argument}`, which is not a keyword-only Tensor"
    if len(schema.returns) != len(written):
        return f"it writes to {len(written)} but returns {len(schema.returns)}"
    pairs = zip(written, schema.returns, strict=True)
    for index, (argument, result) in enumerate(pairs, 1):
        if not _is_same(argument, result):
            return f"result {index} is `{result}`, not the written `{argument}`"
    return None


def _inplace_fault(schema: Schema) -> str | None:
    """Check that only the first argument is written to, and is the one result."""
    first = schema.arguments[0] if schema.arguments else None
    if first is None or first.kwarg_only or first.type != TensorType:
        return "its first argument is not a positional Tensor"
    if not first.is_write:
        return f"it does not write to its first argument `{first}`"
    for argument in schema.arguments[1:]:
        if argument.is_write:
            return f"it also writes to `{argument}`"
    if len(schema.returns) != 1 or not _is_same(first, schema.returns[0]):
        return f"its one result is not the written `{first}`"
    return None


def _is_same(argument: Argument, result: Argument) -> bool:
    return argument.type == result.type and argument.alias == result.alias
