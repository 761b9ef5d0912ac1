"""Handling: from a call at the key Python to the handlers, and back to its results.

This is the general way, for any schema; the fast paths of
`runtime.torch_dispatch.fallback` do the same for most calls in less time.

How it works: the first step does not depend on an interpreter. It finds the *context*
of the call: that of the innermost mode, else that of the first argument that has one.
The second step, in that context, calls the mode. If the mode declines, it calls the
classes of the arguments, in the order that NumPy defined for `__array_function__` (NEP
18) and that torch shares. The third step converts the handler's result to the
operator's.

Rules:
- a mode is off the stack during its call; without the last one the keys that modes
  include are off too; classes are called with the modes back on the stack;
- a handler must leave the stack of modes unchanged; otherwise it is restored, and that
  is an error;
- tensors are searched where the schema has a tensor or any list, but not inside tuples
  and dicts. One tensor of each class is called; a class precedes the first one that it
  derives from, else classes follow the order of the arguments;
- every handler gets separate arguments: its changes are invisible to the others; a
  number in place of a tensor, as in `x * 2`, is passed as that number;
- an operator whose results are its written arguments returns these very objects,
  whatever its handler returned; other results are converted like those of any Python
  kernel, and an error for a wrong result names the handler;
- a view that a handler created as a separate wrapper shares its version counter with
  the argument that it shows.
"""

from collections.abc import Callable, Sequence
from typing import Any

from everyorder.runtime.dispatch.registration_record import ClassRule
from everyorder.runtime.errors.call import KernelError
from everyorder.runtime.errors.torch_dispatch import HandlerError, ModeStackError
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.schema.binding import returner
from everyorder.runtime.schema.call_errors import shortened
from everyorder.runtime.schema.defaults import presented_stripper
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.types import (
    ListType,
    Type,
    is_dispatch_type,
    unwrap_optional,
)
from everyorder.runtime.tensors.keys import PYTHON, STATE
from everyorder.runtime.tensors.storage import WrapperStorage
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.torch_dispatch.context_library import OTHERS, check_contexts
from everyorder.runtime.torch_dispatch.modes import (
    inside,
    inside_last,
    mode_name,
    mode_names,
    same_modes,
)
from everyorder.runtime.torch_dispatch.wrappers import aliases_of

Overloaded = list[Any]


def collector(schema: Schema) -> Callable[[Sequence[Any]], Overloaded]:
    """Return the function that selects the arguments with handlers, in calling
    order.
    """
    places = tuple(
        (place, is_list(argument.type))
        for place, argument in enumerate(schema.arguments)
        if is_dispatch_type(argument.type) == "tensor" or is_list(argument.type)
    )

    def collect(arguments: Sequence[Any]) -> Overloaded:
        overloaded: Overloaded = []
        for place, several in places:
            value = arguments[place]
            if several:
                for each in value or ():
                    if getattr(each, "key_bits", 0) & PYTHON:
                        insert(overloaded, each)
            elif value is not None and value.key_bits & PYTHON:
                insert(overloaded, value)
        return overloaded

    return collect


def insert(overloaded: Overloaded, tensor: Any) -> None:
    """Insert a tensor at its place in the calling order, if its class is new."""
    kind = type(tensor)
    for each in overloaded:
        if type(each) is kind:
            return
    for place, each in enumerate(overloaded):
        if issubclass(kind, type(each)):
            overloaded.insert(place, tensor)
            return
    overloaded.append(tensor)


def is_list(kind: Type) -> bool:
    """Return True if a type is a list, or an optional list."""
    return isinstance(unwrap_optional(kind), ListType)


class Handling:
    """The handling of one operator's calls; created for its entry once.

    `operator()` returns the handle that handlers receive, `rules` are those of the
    entry; `numbers` is True if the operator accepts numbers for tensors: handlers get
    the numbers.
    """

    __slots__ = ("_overloaded", "_rules", "finish", "operator", "strip")

    def __init__(
        self,
        schema: Schema,
        operator: Callable[[], Any],
        rules: tuple[ClassRule, ...] = (),
        numbers: bool = False,
    ) -> None:
        self.operator = operator
        self._rules = rules
        self.strip = presented_stripper(schema, Tensor if numbers else None)
        self._overloaded = collector(schema)
        self.finish = finisher(schema)

    def handle(self, *arguments: Any) -> Any:
        """Call the innermost mode, then the classes; return the operator's result."""
        stack, view, before = STATE.stack, LOCAL.view, STATE.context
        overloaded = self._overloaded(arguments)
        func = self.operator()
        STATE.context = _context(func, stack, overloaded, arguments)
        try:
            if stack:
                mode = stack[-1].mode
                rest = STATE.stack = stack[:-1]
                LOCAL.view = inside(view) if rest else inside_last(view)
                types = tuple(map(type, overloaded))
                by = self._by(mode)
                result = self._call_handler(by, mode, func, types, arguments)
                check_stack(by, rest)
                if result is not NotImplemented:
                    return self.finish(result, arguments, by)
            STATE.stack, LOCAL.view = stack, inside(view)
            return self._classes(func, overloaded, arguments)
        finally:
            STATE.stack = stack
            LOCAL.view = view
            STATE.context = before

    def _classes(self, func: Any, overloaded: Overloaded, arguments: Any) -> Any:
        """Call the handlers of the arguments' classes, one after the other."""
        stack, types = STATE.stack, tuple(map(type, overloaded))
        for tensor in overloaded:
            by = self._by(tensor)
            result = self._call_handler(by, type(tensor), func, types, arguments)
            check_stack(by, stack)
            if result is not NotImplemented:
                return self.finish(result, arguments, by)
        raise _not_implemented(func, stack, overloaded)

    def refused(self, *arguments: Any) -> Any:
        """Continue after the first handler returned NotImplemented.

        That was the innermost mode's, or else that of the one class of the arguments.
        """
        stack, view, before = STATE.stack, LOCAL.view, STATE.context
        func, overloaded = self.operator(), self._overloaded(arguments)
        if not stack:
            raise _not_implemented(func, stack, overloaded)
        LOCAL.view = inside(view)
        try:
            return self._classes(func, overloaded, arguments)
        finally:
            STATE.stack = stack
            LOCAL.view = view
            STATE.context = before

    def _by(self, subject: Any) -> Any:
        """Return the rule of the class of a mode or tensor, or the mode or tensor
        itself.
        """
        for rule in self._rules:
            if rule.cls is type(subject):
                return rule
        return subject

    def _call_handler(
        self, handler: Any, subject: Any, func: Any, types: Any, arguments: Any
    ) -> Any:
        """Return the result of a handler, or of a rule, which receives the mode or
        class.
        """
        args, by_name = self.strip(*arguments)
        if isinstance(handler, ClassRule):
            return handler.function(subject, func, types, args, by_name)
        return handler.__torch_dispatch__(func, types, args, by_name)


def check_stack(handler: Any, expected: Any) -> None:
    """Check that the modes on the stack are those before the handler's call.

    A handler that entered a mode and left it again changes the tuple, not the modes.

    Raises:
        ModeStackError: the stack has changed.
    """
    if STATE.stack is expected or same_modes(STATE.stack, expected):
        return
    raise ModeStackError(
        code="ModeStackChanged",
        handler=handler_name(handler),
        left=mode_names(STATE.stack),
        stack=mode_names(expected),
    )


def _context(func: Any, stack: Any, overloaded: Overloaded, arguments: Any) -> Any:
    """Return the context that a call belongs to.

    Raises:
        HandlerError: there is neither a mode nor a tensor with a handler.
        ContextError: the tensors belong to different contexts, or it is closed.
    """
    if not (stack or overloaded):
        raise HandlerError(code="NothingToHandle", operator=str(func))
    # A tensor whose keys were set by hand does not have a context.
    here = STATE.context
    context = stack[-1].context if stack else getattr(overloaded[0], "_context", here)
    if OTHERS:
        # If two tensors share a class, only the first one is in `overloaded`.
        check_contexts(context, arguments, lambda: func)
    return context


def _not_implemented(func: Any, stack: Any, overloaded: Overloaded) -> HandlerError:
    modes = (f"the mode {mode_name(stack[-1].mode)}",) if stack else ()
    classes = tuple(f"the class {type(each).__name__}" for each in overloaded)
    return HandlerError(
        code="NoImplementation", operator=str(func), asked=(*modes, *classes)
    )


# Arguments: the handler's return value, all arguments, the mode or tensor. Returns the
# result.
Finish = Callable[[Any, Sequence[Any], Any], Any]


def handler_name(handler: Any) -> str:
    """Return the name of the handler of a tensor or mode, or of a rule, for errors."""
    if isinstance(handler, ClassRule):
        return f"the rule of {handler.cls.__qualname__}, {handler.debug}"
    return f"{type(handler).__qualname__}.__torch_dispatch__"


def finisher(schema: Schema) -> Finish:
    """Return the function that converts a handler's result to the operator's."""
    convert = returner(schema)

    def converted(value: Any, handler: Any) -> Any:
        try:
            result = convert(value)
        except KernelError as error:
            problem = _problem(error)
        else:
            foreign = _foreign(result)
            if not foreign:
                return result
            problem = f"{foreign}, which has keys but is not a tensor"
        raise HandlerError(
            code="WrongHandlerResult",
            handler=handler_name(handler),
            operator=str(schema.name),
            problem=problem,
            schema=str(schema),
        )

    aliases = aliases_of(schema)
    if aliases.written and len(aliases.written) == len(schema.returns):
        return _identical(aliases.written, converted)
    if schema.is_view and aliases.shown:
        return _counting(aliases.shown, len(schema.returns) == 1, converted)
    return lambda value, arguments, handler: converted(value, handler)


def _identical(written: tuple[int, ...], converted: Callable[..., Any]) -> Finish:
    def finish(value: Any, arguments: Sequence[Any], handler: Any) -> Any:
        converted(value, handler)
        if len(written) == 1:
            return arguments[written[0]]
        return tuple(arguments[place] for place in written)

    return finish


def _counting(
    views_of: tuple[tuple[int, int], ...], single: bool, converted: Callable[..., Any]
) -> Finish:
    """Make wrappers that show an argument's memory share its version counter."""

    def finish(value: Any, arguments: Sequence[Any], handler: Any) -> Any:
        result = converted(value, handler)
        for argument, number in views_of:
            origin = arguments[argument]
            if not isinstance(origin, Tensor):
                continue
            views = result if single else result[number]
            for each in views if isinstance(views, (list, tuple)) else (views,):
                place = getattr(each, "_place", None)
                if place is None or each is origin:
                    continue
                storage = place[0]
                if isinstance(storage, WrapperStorage):
                    storage.counts_with(origin.storage())
        return result

    return finish


def _foreign(result: Any) -> str:
    """Return the text of a value that has keys but is not a tensor; or ""."""
    if isinstance(result, (list, tuple)):
        return next(filter(None, map(_foreign, result)), "")
    if isinstance(result, Tensor) or not hasattr(result, "key_bits"):
        return ""
    return shortened(result)


def _problem(error: KernelError) -> str:
    """Return the problem in a kernel's error, worded for a handler."""
    actual, expected = error.found, error.expected
    if error.code == "WrongReturnCount":
        noun = "value" if actual == 1 else "values"
        return f"{actual} {noun}; the operator has {expected}"
    where = "" if error.position is None else f" at position {error.position}"
    return f"{actual} {error.value}{where}; {expected} belongs there"
