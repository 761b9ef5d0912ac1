"""Values: the operations on values of a graph, by type.

This module has attributes, methods, subscripts and truth of values; operators are in
`runtime.script.emission.operators`.

Rules:
- a field of a named tuple has precedence over methods;
  `runtime.script.emission.objects` handles objects of programs;
- methods of numbers, texts, lists and dictionaries are primitives, those of tensors
  operators of the runtime;
- a subscript of a tuple must be a constant; a subscript of a tensor becomes views,
  dimension by dimension, and for index tensors one `script::part`, or `set_part`; a
  list becomes an index tensor.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from everyorder.runtime.schema.enums import DType
from everyorder.runtime.schema.subtyping import Mismatch, match
from everyorder.runtime.schema.types import (
    BoolType,
    DictType,
    IntType,
    ListType,
    NoneType_,
    OptionalType,
    ScalarTypeType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from everyorder.runtime.script.emission.call_matching import (
    call_forms,
    call_rows,
    forms_of_operator,
    forms_of_rows,
)
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    Sugared,
    becomes,
    no_attribute,
)
from everyorder.runtime.script.emission.runtime_functions import (
    Operator,
    tensor_method,
)
from everyorder.runtime.script.emission.sugar import (
    VALUE_ATTRIBUTES,
    VALUE_DELETE_SUBSCRIPT,
    VALUE_SET_SUBSCRIPT,
    VALUE_SUBSCRIPT,
    VALUE_TRUTH,
    SimpleValue,
    SugaredEllipsis,
    SugaredSlice,
    SugaredTuple,
    constant_of,
    part_of,
    sugar_of_value,
    type_of,
)
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.primitives import (
    by_attribute,
    by_function,
    by_method,
    by_operator,
    methods_of,
)
from everyorder.runtime.tensors.tensor import Tensor

_MAY_BE_NONE = "It may be None: ask with `is not None` first."


def attribute(e: Emitter, self_: SimpleValue, name: str) -> Sugared:
    """Emit `self.name`."""
    kind = self_.type
    candidates: list[str] = []
    if isinstance(kind, TupleType) and name in kind.names:
        place = kind.names.index(name)
        types = (kind.elements[place],)
        node = e.node("prim::TupleIndex", (self_.node_value,), types, {"index": place})
        return sugar_of_value(node.output)
    rows = by_attribute(name, kind)
    if rows:
        return call_rows(e, f"the attribute `{name}`", rows, self_)
    rows = by_method(name, kind)
    if kind is TensorType and not rows:
        method = tensor_method(e, self_, name)
        if method is not None:
            return method
    if rows:
        return Operator(f"{_plain(kind)}.{name}", forms_of_rows(rows), self_)
    hint = ""
    if isinstance(kind, OptionalType):
        hint = _MAY_BE_NONE
    elif kind is TensorType:
        if hasattr(Tensor, name):
            hint = "Tensors have it in Python alone: no operator has this name."
        candidates += [each for each in dir(Tensor) if not each.startswith("_")]
    elif isinstance(kind, TupleType):
        candidates += kind.names
    candidates += methods_of(kind)
    return no_attribute(e, self_.describe(), name, candidates, hint)


def _plain(kind: object) -> str:
    if isinstance(kind, ListType):
        return "list"
    return "dict" if isinstance(kind, DictType) else str(kind)


# Subscripts


def subscript(e: Emitter, self_: SimpleValue, index: Sugared) -> Sugared:
    """Emit `self[index]`."""
    kind = self_.type
    if isinstance(kind, TupleType):
        items = self_.elements(e)
        assert items is not None, "tuples have elements"
        part = part_of(e, items, index)
        if part is None:
            e.fail(
                f"an element of {kind} is selected by an index that is not a constant",
                "The elements of a tuple have different types: write a number.",
            )
        return SugaredTuple(part) if isinstance(part, list) else part
    if kind is TensorType:
        return _tensor_part(e, self_, index)
    symbol, bounds = _bounds(e, "[]", "[:]", index)
    return _primitive(e, symbol, kind, (self_, *bounds))


def set_subscript(
    e: Emitter, self_: SimpleValue, index: Sugared, value: Sugared
) -> None:
    """Emit `self[index] = value`."""
    if self_.type is TensorType:
        _set_tensor_part(e, self_, index, value)
        return
    symbol, bounds = _bounds(e, "[]=", "[:]=", index)
    _primitive(e, symbol, self_.type, (self_, *bounds, value))


def delete_subscript(e: Emitter, self_: SimpleValue, index: Sugared) -> None:
    """Emit `del self[index]`."""
    symbol, bounds = _bounds(e, "del []", "del [:]", index)
    _primitive(e, symbol, self_.type, (self_, *bounds))


def _bounds(
    e: Emitter, plain: str, sliced: str, index: Sugared
) -> tuple[str, tuple[Sugared, ...]]:
    if not isinstance(index, SugaredSlice):
        return plain, (index,)
    return sliced, tuple(
        SimpleValue(e.constant(None)) if each is None else each for each in index.parts
    )


# Symbol of an operation on a part -> its name, and the error of a value without it.
_PARTS = {
    "[]": ("a subscript", "has no elements"),
    "[:]": ("a slice", "has no slices"),
    "[]=": ("an element that is set", "has no elements to set"),
    "[:]=": ("a slice that is set", "has no slices to set"),
    "del []": ("an element that is deleted", "has no elements to delete"),
    "del [:]": ("a slice that is deleted", "has no slices to delete"),
}


def _primitive(
    e: Emitter, symbol: str, kind: Type, operands: Sequence[Sugared]
) -> Sugared:
    words, none = _PARTS[symbol]
    rows = [
        row
        for row in by_operator(symbol)
        if not isinstance(match((row.schema.arguments[0].type,), (kind,)), Mismatch)
    ]
    if not rows:
        hint = _MAY_BE_NONE if isinstance(kind, OptionalType) else ""
        e.fail(f"a value of type {kind} {none}", hint)
    return call_rows(e, words, rows, *operands)


def _tensor_part(e: Emitter, self_: SimpleValue, index: Sugared) -> Sugared:
    view, indices = _view(e, self_, index)
    if not indices:
        if view.node_value is self_.node_value:
            return _core(e, "alias", view)
        return view
    return SimpleValue(
        e.operator("script::part.Tensor", view.node_value, _as_list(e, view, indices))
    )


@dataclass(frozen=True, slots=True)
class IndexTensors:
    """The index tensors of a subscript, by dimensions of the view; None keeps one.

    `last` are those after `...`, which end with the last dimension.
    """

    first: list[Value | None]
    last: list[Value | None]

    def __bool__(self) -> bool:
        return any(each is not None for each in (*self.first, *self.last))


def _as_list(e: Emitter, view: SimpleValue, indices: IndexTensors) -> Value:
    first = _optional_tensors(e, indices.first)
    if not any(each is not None for each in indices.last):
        return first
    last = _optional_tensors(e, indices.last)
    return e.operator("script::spread.Tensor", view.node_value, first, last)


def _optional_tensors(e: Emitter, indices: Sequence[Value | None]) -> Value:
    parts = [e.constant(None) if each is None else each for each in indices]
    kind = ListType(OptionalType(TensorType))
    return e.node("prim::ListConstruct", parts, (kind,)).output


def _set_tensor_part(
    e: Emitter, self_: SimpleValue, index: Sugared, value: Sugared
) -> None:
    view, indices = _view(e, self_, index)
    is_tensor = type_of(value) is TensorType
    if not indices:
        _core(e, "copy_" if is_tensor else "fill_", view, value)
        return
    if not is_tensor:
        fill_arguments = Arguments(
            (
                SimpleValue(
                    e.node("prim::ListConstruct", (), (ListType(IntType),)).output
                ),
                value,
            ),
            {name: self_.attribute(e, name) for name in ("dtype", "device")},
        )
        value = call_forms(e, "`[]=`", forms_of_operator("core::full"), fill_arguments)
    inputs = view.node_value, _as_list(e, view, indices), value.value(e)
    e.node("script::set_part.Tensor", inputs)


def _core(e: Emitter, name: str, *operands: Sugared) -> SimpleValue:
    forms = [
        each for each in forms_of_operator(f"core::{name}") if not each.schema.overload
    ]
    result = call_forms(e, "a subscript", forms, Arguments(operands))
    assert isinstance(result, SimpleValue), "an operator returns a value"
    return result


def _view(
    e: Emitter, self_: SimpleValue, index: Sugared
) -> tuple[SimpleValue, IndexTensors]:
    """Return the view that an index selects, and the remaining index tensors.

    After `...`, dimensions are counted from the end.
    """
    parts = index.items if isinstance(index, SugaredTuple) else (index,)
    ellipses = [n for n, each in enumerate(parts) if isinstance(each, SugaredEllipsis)]
    if len(ellipses) > 1:
        e.fail("a subscript has `...` twice")
    split = ellipses[0] if ellipses else len(parts)
    view = self_
    indices: list[Value | None] = []
    last: list[Value | None] = []
    dim = 0
    for each in parts[:split]:
        view, dim = _step(e, view, each, dim, indices)
    rest = parts[split + 1 :]
    # From the end: each step leaves the following dimensions unchanged.
    dim = -1
    for each in reversed(rest):
        entries: list[Value | None] = []
        view, _ = _step(e, view, each, dim, entries)
        dim -= len(entries)
        last[:0] = entries
    if not any(each is not None for each in last):
        while indices and indices[-1] is None:
            indices.pop()
    return view, IndexTensors(indices, last)


def _step(
    e: Emitter,
    view: SimpleValue,
    index: Sugared,
    dim: int,
    indices: list[Value | None],
) -> tuple[SimpleValue, int]:
    place = SimpleValue(e.constant(dim))
    kind = type_of(index)
    if isinstance(index, SugaredSlice):
        bounds = [
            SimpleValue(e.constant(None)) if each is None else each
            for each in index.parts[:2]
        ]
        step = index.step or SimpleValue(e.constant(1))
        indices.append(None)
        if index.parts == (None, None, None):
            return view, dim + 1
        return _core(e, "slice", view, place, *bounds, step), dim + 1
    if kind is IntType:
        return _core(e, "select", view, place, index), dim
    if kind is NoneType_:
        indices.append(None)
        return _core(e, "unsqueeze", view, place), dim + 1
    if kind is BoolType:
        # A new dimension, with a mask of one element.
        value = e.node(
            "prim::ListConstruct", (index.value(e),), (ListType(BoolType),)
        ).output
        indices.append(_index_tensor(e, view, value))
        return _core(e, "unsqueeze", view, place), dim + 1
    if kind is TensorType:
        indices.append(index.value(e))
        return view, dim + 1
    if isinstance(kind, ListType):
        value = index.value(e)
        becomes(value, ListType(IntType), e.untyped)
        if _element(value.type) in (IntType, BoolType):
            indices.append(_index_tensor(e, view, value))
            return view, dim + 1
    hint = "Indices are ints, bools, slices, None, `...`, tensors and lists of numbers."
    return e.fail(f"a tensor is indexed by {index.describe()}", hint)


def _element(kind: Type) -> Type:
    """Return the type of the elements of a list of lists."""
    return _element(kind.element) if isinstance(kind, ListType) else kind


def _index_tensor(e: Emitter, view: SimpleValue, elements: Value) -> Value:
    """Return a list of numbers, or of bools, as an index tensor."""
    is_mask = _element(elements.type) is BoolType
    dtype = DType.named("bool" if is_mask else "int64")
    return e.operator(
        "script::tensor.t",
        elements,
        e.constant(dtype.code, ScalarTypeType),
        view.attribute(e, "device").value(e),
        e.constant(False),
    )


# Truth


def truth(e: Emitter, self_: SimpleValue) -> Value | bool:
    """Return the truth of a value."""
    kind = self_.type
    if kind is BoolType:
        is_known, constant = constant_of(self_)
        return constant if is_known else self_.node_value
    if kind is NoneType_:
        return False
    if isinstance(kind, TupleType):
        return bool(kind.elements)
    if isinstance(kind, OptionalType):
        return _optional_truth(e, self_, kind)
    return call_rows(e, "a condition", by_function(bool), self_).value(e)


def _optional_truth(e: Emitter, self_: SimpleValue, kind: OptionalType) -> Value | bool:
    none = SimpleValue(e.constant(None))
    there = call_rows(e, "`is not`", by_operator("is not"), self_, none)

    def inner() -> Value | bool:
        return sugar_of_value(e.cast(self_.node_value, kind.element)).truth(e)

    return e.if_else(there.value(e), inner, lambda: False)


def text_of(e: Emitter, message: Sugared) -> Value:
    """Return the text of an exception's message."""
    if isinstance(message, SimpleValue) and message.type is StrType:
        return message.node_value
    return call_rows(e, "`str`", by_function(str), message).value(e)


VALUE_ATTRIBUTES.set(attribute)
VALUE_SUBSCRIPT.set(subscript)
VALUE_SET_SUBSCRIPT.set(set_subscript)
VALUE_DELETE_SUBSCRIPT.set(delete_subscript)
VALUE_TRUTH.set(truth)
