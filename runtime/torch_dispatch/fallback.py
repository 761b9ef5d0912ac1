"""The fallbacks at PythonTLSSnapshot and Python: where a call enters Python handlers.

The first stores the state of the thread for `enable_reentrant_dispatch`; the second
calls the handlers, in one of two ways: by `runtime.torch_dispatch.torch_dispatch_call`,
or by a generated function with the operator's own parameters. The generated function
does the same where at most one class has a handler, the operator has no rules, no
argument is a list, and all tensors belong to the thread's context:

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

A *rule* defines, from outside, the behavior of a class of tensors or modes for one
operator. It precedes the handler of exactly its class, and is called `fn(cls_or_mode,
func, types, args, kwargs)`: with the mode itself for a class of modes, with the class
for one of tensors; NotImplemented passes the call to the next handler.

Rules:
- every key above Python is excluded while a handler runs, as autograd has processed the
  call; Python itself is not, and a handler that calls the operator on its own tensors
  is called again;
- exceptions of a handler propagate, and the thread's state is restored; only a
  recursion that goes through handlers is replaced by another error;
- a class that returned NotImplemented, or left other modes, is not called again;
- a tensor whose keys were set by hand has no context, and uses the general way;
- the state of the thread is read and written in its `__dict__`, looked up once: an
  attribute of a `threading.local` costs three times as much as an item;
- a rule is a registration (`runtime.dispatch.registration_record.ClassRule`): it is
  live by its operator's name, defined or not, and is part of its dispatcher's state;
  there is one for an operator and a class, and closing it restores the class's own
  handler.
"""

from collections.abc import Callable
from typing import Any
from weakref import ref

from everyorder.runtime.base.codegen import block, is_generated, numbered, template
from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.kernel import linked
from everyorder.runtime.dispatch.library import Library, origin_of_caller
from everyorder.runtime.dispatch.registration import Registration, register_tokens
from everyorder.runtime.dispatch.registration_record import rule_for
from everyorder.runtime.errors.registration import LibraryMisuse
from everyorder.runtime.errors.torch_dispatch import EndlessDispatch
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.operators.decompositions import DECOMPOSITIONS, decomposing
from everyorder.runtime.schema.schema import NUMBERS_AS_TENSORS, Schema
from everyorder.runtime.schema.types import is_dispatch_type
from everyorder.runtime.tensors.keys import PYTHON, STATE
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.torch_dispatch.modes import inside, inside_last
from everyorder.runtime.torch_dispatch.torch_dispatch_call import (
    Handling,
    check_stack,
    handler_name,
    is_list,
)

Function = Callable[..., Any]

# The name of the generated functions in tracebacks.
HANDLING = "handling of a call in Python"


def snapshotting(below: Any, keyset: Any) -> Callable[..., Any]:
    """Return the PythonTLSSnapshot kernel of an operator.

    It stores the thread's view of the keys when the call begins.
    """
    count = -1 if below.schema.is_vararg else len(below.schema.arguments)
    return _snapshot(count)(below.run, below.operator)


def handling(below: Any, keyset: Any) -> Callable[..., Any]:
    """Return the Python kernel of an operator: the fast path where it has one.

    The fast path does not support rules: an operator with rules uses the general way.
    """
    numbers = NUMBERS_AS_TENSORS in below.tags
    general = Handling(below.schema, below.operator, below.rules, numbers)
    if below.rules:
        return general.handle
    return fast_path(below.schema, general) or general.handle


# The names in dumps.
SNAPSHOT = linked(snapshotting, "python_snapshot")

HANDLE = linked(handling, "python_dispatch")


def install_decompositions(library: Library) -> None:
    """Register what handlers see in place of operators, in a library of `core`."""
    for name, parts in DECOMPOSITIONS.items():
        kernel = linked(decomposing(handling, parts), f"{name}_decomposed")
        library.impl(name, kernel, debug=kernel.facts.name)


def install_fallbacks(library: Library) -> tuple[Registration, ...]:
    """Register dispatch to Python, in a library of the namespace `_`."""
    return (
        library.fallback(SNAPSHOT, "PythonTLSSnapshot"),
        library.fallback(HANDLE, "Python"),
    )


def fast_path(schema: Schema, general: Handling) -> Function | None:
    """Return the fast path of an operator; None if its schema does not allow one."""
    kinds = [argument.type for argument in schema.arguments]
    if schema.is_vararg or any(map(is_list, kinds)):
        return None
    places = tuple(
        place for place, kind in enumerate(kinds) if is_dispatch_type(kind) == "tensor"
    )
    plain = [str(each) for each in schema.returns] == ["Tensor"]
    return _handle(len(kinds), places, plain)(
        general.handle,
        general.refused,
        general.operator,
        general.strip,
        general.finish,
        # The caller usually owns the handle.
        ref(general.operator()),
    )


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
    parameters = numbered(count)
    values = f"({parameters},)" if count else "()"
    text = [
        "mine = STATE.__dict__",
        "stack = mine['stack']",
        "first = None",
        "try:",
    ]
    for number, place in enumerate(places):
        text += [
            f"    if a{place} is not None and a{place}.key_bits & PYTHON:",
            *_find_handled(f"a{place}", number == 0, parameters),
        ]
    text += [
        "    if first is None:",
        "        types = ()",
        "        context = stack[-1].context if stack else None",
        "    else:",
        "        types = (type(first),)",
        "        context = first._context",
        # Tensors whose keys were set by hand do not have a handler.
        "except AttributeError:",
        f"    return general({parameters})",
        "if context is not mine['context'] or not context.alive:",
        f"    return general({parameters})",
        "func = known()",
        "if func is None:",
        "    func = operator()",
        f"args, kwargs = strip({parameters})",
        "local = LOCAL.__dict__",
        "view = local['view']",
        "if stack:",
        "    entered = stack[-1]",
        "    if entered.context is not context:",
        f"        return general({parameters})",
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
        f"    return refused({parameters})",
        # A tensor result that cannot alias an argument needs no conversion.
        *(["if isinstance(result, Tensor): return result"] if plain else ()),
        f"return finish(result, {values}, handler)",
    ]
    return block(f"def handle({parameters}):", text)


def _find_handled(name: str, single: bool, parameters: str) -> list[str]:
    if single:
        return [f"        first = {name}"]
    return [
        "        if first is None:",
        f"            first = {name}",
        f"        elif type({name}) is not type(first) or "
        f"{name}._context is not first._context:",
        f"            return general({parameters})",
    ]


# This many nested handlers mean endless recursion: Python allows a thousand frames, and
# one handler uses four at least.
ENDLESS = 32

# The greatest distance after the last handler, as a multiple of the usual distance
# between two. A longer one is a recursion that does not go through handlers.
FARTHEST = 4

# The code that calls handlers, other than the fast paths.
_FRAMES = (Handling._call_handler.__code__,)


def _check_endless(error: RecursionError, operator: Callable[[], Any]) -> None:
    """Raise `EndlessDispatch` if a recursion goes through handlers.

    It is raised here, because an exception in a frame of its own traceback would keep
    the arguments of the call alive.
    """
    if isinstance(error, EndlessDispatch):
        return
    depth, frames, after, last, trace = 0, 0, 0, None, error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        frames, after = frames + 1, after + 1
        if frame.f_code in _FRAMES or is_generated(frame.f_code, HANDLING):
            # Both frames name it `handler`.  The name of the handler's code shows only
            # where it was written, which may be another class or mode.
            last = frame.f_locals.get("handler", last)
            depth, after = depth + 1, 0
        trace = trace.tb_next
    if depth >= ENDLESS and last is not None and after * depth <= FARTHEST * frames:
        raise EndlessDispatch(
            handler=handler_name(last), operator=str(operator()), depth=depth
        ) from error


@template(
    "snapshot",
    "run, operator",
    LOCAL=LOCAL,
    STATE=STATE,
    check_endless=_check_endless,
)
def _snapshot(count: int) -> list[str]:
    """Return the lines of the kernel for `count` arguments; -1 for any number."""
    parameters = numbered(count) if count >= 0 else "*rest"
    body = [
        "mine = STATE.__dict__",
        'if mine["snapshot"] is not None:',
        f"    return run({parameters})",
        'mine["snapshot"] = LOCAL.view',
        "try:",
        f"    return run({parameters})",
        "except RecursionError as error:",
        "    check_endless(error, operator)",
        "    raise",
        "finally:",
        '    mine["snapshot"] = None',
    ]
    return block(f"def snapshot({parameters}):", body)


def register_torch_dispatch(
    func: Any, cls: type, fn: Callable[..., Any]
) -> Registration:
    """Let `fn` handle the operator `func` for modes or tensors of class `cls`.

    `func` is an `OperatorHandle`. Store the returned registration to be able to close
    it; dropping it does not end the rule. `Library.rule` creates a rule that ends with
    its library.

    Raises:
        LibraryMisuse: an argument has the wrong type.
        Conflict: the class has a rule for the operator.
        LibraryMisuse: called by a listener.
    """
    if not isinstance(func, OperatorHandle):
        actual, expected = type(func).__name__, "an operator with its overload"
        raise LibraryMisuse(
            code="WrongArgument", argument="func", expected=expected, found=actual
        )
    dispatcher = func.dispatcher
    assert isinstance(dispatcher, Dispatcher), "handles are made for dispatchers"
    token = rule_for(func.name, cls, fn, None, origin_of_caller())
    return register_tokens(dispatcher, {}, (token,))
