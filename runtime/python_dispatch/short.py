"""Short ways: most calls at the key Python as one function of the operator's arguments.

True only here: the text of that function, for schemas whose tensors are arguments of
their own.  It does what `Handling.handle` does where one class at most has a handler,
the operator has no rules, and everything belongs to the thread's own context; all else,
and what goes wrong, goes there.

    def handle(a0, a1, a2):
        mine = STATE.__dict__
        stack = mine['stack']
        first = None
        if a0.key_bits & PYTHON:
            first = a0
        ...
        if stack:
            ...  # the innermost mode
        else:
            result = first.__torch_dispatch__(func, (type(first),), given, by_name)

Rules:
- a text is compiled once for all schemas whose arguments look alike;
- a class that returned NotImplemented, or left other modes, is not asked again;
- a tensor whose keys were set by hand, which is of no context, goes the general way;
- what is the thread's own is read and written in its `__dict__`, found once: an
  attribute of a `threading.local` costs three times as much as an item.
"""

from collections.abc import Callable
from typing import Any
from weakref import ref

from runtime.generated import block, numbered, template
from runtime.keys import LOCAL
from runtime.python_dispatch.handling import Handling, check_stack
from runtime.python_dispatch.inside import inside, inside_last
from runtime.python_dispatch.overloaded import is_list
from runtime.schema.schema import Schema
from runtime.schema.types import is_dispatch_type
from runtime.tensors.keys import PYTHON, STATE
from runtime.tensors.tensor import Tensor

Function = Callable[..., Any]

# What tracebacks call the short ways.
HANDLING = "handling of a call in Python"


def short_way(schema: Schema, general: Handling) -> Function | None:
    """The short way of an operator; None if its schema has none."""
    kinds = [argument.type for argument in schema.arguments]
    if schema.is_vararg or any(map(is_list, kinds)):
        return None
    places = tuple(
        place for place, kind in enumerate(kinds) if is_dispatch_type(kind) == "tensor"
    )
    plain = [str(each) for each in schema.returns] == ["Tensor"]
    made: Function = _handle(len(kinds), places, plain)(
        general.handle,
        general.refused,
        general.operator,
        general.strip,
        general.finish,
        # Whoever calls has the handle, most of the time.
        ref(general.operator()),
    )
    return made


@template(
    HANDLING,
    "general, refused, operator, strip, finish, known",
    LOCAL=LOCAL,
    PYTHON=PYTHON,
    STATE=STATE,
    Tensor=Tensor,
    check_stack=check_stack,
    inside=inside,
    inside_last=inside_last,
)
def _handle(count: int, places: tuple[int, ...], plain: bool) -> list[str]:
    given = numbered(count)
    values = f"({given},)" if count else "()"
    text = [
        "mine = STATE.__dict__",
        "stack = mine['stack']",
        "first = None",
        "try:",
    ]
    for number, place in enumerate(places):
        text += [
            f"    if a{place} is not None and a{place}.key_bits & PYTHON:",
            *_found(f"a{place}", number == 0, given),
        ]
    text += [
        "    if first is None:",
        "        types = ()",
        "        context = stack[-1].context if stack else None",
        "    else:",
        "        types = (type(first),)",
        "        context = first._context",
        # Keys that were set by hand are no handler's.
        "except AttributeError:",
        f"    return general({given})",
        "if context is not mine['context'] or not context.alive:",
        f"    return general({given})",
        "func = known()",
        "if func is None:",
        "    func = operator()",
        f"args, kwargs = strip({given})",
        "local = LOCAL.__dict__",
        "view = local['view']",
        "if stack:",
        "    entered = stack[-1]",
        "    if entered.context is not context:",
        f"        return general({given})",
        "    handler = entered.mode",
        "    rest = stack[:-1]",
        "    if rest:",
        "        inner = view.handling or inside(view)",
        "    else:",
        "        inner = view.handling_last or inside_last(view)",
        "    mine['stack'] = rest",
        "else:",
        "    handler = first",
        "    rest = stack",
        "    inner = view.handling or inside(view)",
        "local['view'] = inner",
        "try:",
        "    result = handler.__torch_dispatch__(func, types, args, kwargs)",
        "    if mine['stack'] is not rest:",
        "        check_stack(handler, rest)",
        "except BaseException:",
        "    mine['stack'] = stack",
        "    local['view'] = view",
        "    mine['context'] = context",
        "    raise",
        "if rest is not stack:",
        "    mine['stack'] = stack",
        "local['view'] = view",
        "mine['context'] = context",
        "if result is NotImplemented:",
        f"    return refused({given})",
        # A tensor that is nobody's alias is the result itself.
        *(["if isinstance(result, Tensor): return result"] if plain else ()),
        f"return finish(result, {values}, handler)",
    ]
    return block(f"def handle({given}):", text)


def _found(name: str, alone: bool, given: str) -> list[str]:
    if alone:
        return [f"        first = {name}"]
    return [
        "        if first is None:",
        f"            first = {name}",
        f"        elif type({name}) is not type(first) or "
        f"{name}._context is not first._context:",
        f"            return general({given})",
    ]
