"""Assignment: what is done with a target and a value.

True only here: names, elements, attributes, and tuples of such.

Rules:
- targets are assigned from left to right, each computed when it is assigned;
- tuples are unpacked, and lists without `*`: of these the length is looked at when the
  program runs;
- a starred target is a list.
"""

import ast
from collections.abc import Sequence

from runtime.schema.types import ListType
from runtime.script.emission.emitter import Emitter
from runtime.script.emission.expressions import _of, display
from runtime.script.emission.sugar import SimpleValue, Sugared
from runtime.script.frontend import mangled

CONVERT = "Nothing is converted here: write the conversion, or another type."


def assign(e: Emitter, target: ast.expr, value: Sugared) -> None:
    """Assign a value to a target."""
    before = e.at
    e.at = e.at._replace(source=e.source, span=e.source.span(target))
    if isinstance(target, ast.Name):
        _assign_name(e, target.id, value)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(e, target.elts, value)
    elif isinstance(target, ast.Attribute):
        name = mangled(target.attr, e.definition.owner)
        e.expression(target.value).set_attribute(e, name, value)
    elif isinstance(target, ast.Subscript):
        owner = e.expression(target.value)
        owner.set_subscript(e, e.expression(target.slice), value)
    else:
        raise AssertionError("a starred target stands in a tuple")
    e.at = before


def _assign_name(e: Emitter, name: str, value: Sugared) -> None:
    wanted = e.declared.get(name)
    if wanted is not None:
        made = value.value(e)
        message = f"`{name}` is of type {wanted}, and a value of type {{}} is assigned"
        value = e.compiler.sugar(e.fit(made, wanted, message, CONVERT))
    if isinstance(value, SimpleValue):
        made = value.node_value
        if not made.hint:
            made.hint = name
        if type(value) is not SimpleValue and hasattr(value, "original"):
            value = e.compiler.sugar(made)
    e.names[name] = value


def _unpack(e: Emitter, targets: Sequence[ast.expr], value: Sugared) -> None:
    """`a, *b, c = value`."""
    starred = [n for n, each in enumerate(targets) if isinstance(each, ast.Starred)]
    items = value.elements(e)
    if items is None:
        items = _unpacked_list(e, targets, value, bool(starred))
    count = len(targets)
    if starred:
        if len(items) < count - 1:
            _wrong_count(e, f"at least {count - 1}", len(items))
        place = starred[0]
        stop = len(items) - (count - 1 - place)
        middle = [each.value(e) for each in items[place:stop]]

        kind = ListType(_of(e, middle, "values of a starred target"))
        made = SimpleValue(display(e, "prim::ListConstruct", middle, kind))
        parts = [*items[:place], made, *items[stop:]]
    else:
        if len(items) != count:
            _wrong_count(e, str(count), len(items))
        parts = list(items)
    for target, each in zip(targets, parts, strict=True):
        assign(e, target.value if isinstance(target, ast.Starred) else target, each)


def _wrong_count(e: Emitter, wanted: str, count: int) -> None:
    e.fail(f"a tuple of {count} is unpacked, and there are {wanted} targets")


def _unpacked_list(
    e: Emitter, targets: Sequence[ast.expr], value: Sugared, starred: bool
) -> Sequence[Sugared]:
    """The elements of a list, of which there must be as many as there are targets."""
    kind = value.type if isinstance(value, SimpleValue) else None
    if not isinstance(kind, ListType) or starred:
        e.fail(
            f"{value.says()} is unpacked, whose length is not known",
            "Tuples can be unpacked, and lists without `*`.",
        )
    node = e.node("prim::ListUnpack", (value.value(e),), [kind.element] * len(targets))
    return [e.compiler.sugar(each) for each in node.outputs]
