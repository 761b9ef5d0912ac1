"""Handling: from a call at the key Python to the handlers that are asked, in order.

True only here: the whole of it, for any schema; `runtime.python_dispatch.short` does
the same for most calls, sooner.

How it works, in two phases.  The first knows no interpreter: it finds the *context*
that the call belongs to, which is that of the innermost mode, else that of the first
argument that has one.  The second, in that context, asks the mode, and if that is not
the one, the classes of the arguments (`runtime.python_dispatch.overloaded`).

Rules:
- a mode is off the stack while it is asked; with the last one the keys that modes
  include go, too; classes are asked with the modes back on the stack;
- a handler leaves the stack of modes as it was, or it is put back and that is an error;
- every handler gets arguments of its own: what one does to them no other sees;
- a number that was given for a tensor, as in `x * 2`, is shown as that number.
"""

from collections.abc import Callable
from typing import Any

from runtime.dispatch.token import ClassRule
from runtime.errors.mode_stack import ModeStackChanged
from runtime.errors.python_dispatch import NoImplementation, NothingToHandle
from runtime.keys import LOCAL
from runtime.python_dispatch.context_call import OTHERS, check_contexts
from runtime.python_dispatch.inside import inside, inside_last
from runtime.python_dispatch.modes import alike, named, names
from runtime.python_dispatch.overloaded import Overloaded, collector
from runtime.python_dispatch.results import finisher, handler_name
from runtime.schema.schema import Schema
from runtime.schema.strip import presented_stripper
from runtime.tensors.keys import STATE
from runtime.tensors.tensor import Tensor


class Handling:
    """How the calls of one operator are handled; made for its entry once.

    `operator()` gives the handle that handlers see, `rules` are those of the entry;
    `numbers` says that the operator takes numbers for tensors: handlers get them so.
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
        """Ask the innermost mode, then the classes; the operator's result."""
        stack, view, before = STATE.stack, LOCAL.view, STATE.context
        found = self._overloaded(arguments)
        func = self.operator()
        STATE.context = _context(func, stack, found, arguments)
        try:
            if stack:
                mode = stack[-1].mode
                rest = STATE.stack = stack[:-1]
                LOCAL.view = inside(view) if rest else inside_last(view)
                types = tuple(map(type, found))
                by = self._by(mode)
                result = self._asked(by, mode, func, types, arguments)
                check_stack(by, rest)
                if result is not NotImplemented:
                    return self.finish(result, arguments, by)
            STATE.stack, LOCAL.view = stack, inside(view)
            return self._classes(func, found, arguments)
        finally:
            STATE.stack = stack
            LOCAL.view = view
            STATE.context = before

    def _classes(self, func: Any, found: Overloaded, arguments: Any) -> Any:
        """Ask the classes of the arguments, one after the other."""
        stack, types = STATE.stack, tuple(map(type, found))
        for tensor in found:
            by = self._by(tensor)
            result = self._asked(by, type(tensor), func, types, arguments)
            check_stack(by, stack)
            if result is not NotImplemented:
                return self.finish(result, arguments, by)
        raise _not_implemented(func, stack, found)

    def refused(self, *arguments: Any) -> Any:
        """Go on where the first who was asked returned NotImplemented.

        That was the innermost mode, or else the one class of the arguments.
        """
        stack, view = STATE.stack, LOCAL.view
        func, found = self.operator(), self._overloaded(arguments)
        if not stack:
            raise _not_implemented(func, stack, found)
        LOCAL.view = inside(view)
        try:
            return self._classes(func, found, arguments)
        finally:
            STATE.stack = stack
            LOCAL.view = view

    def _by(self, asked: Any) -> Any:
        """Who answers for a mode or tensor: the rule of its class, or itself."""
        for rule in self._rules:
            if rule.cls is type(asked):
                return rule
        return asked

    def _asked(
        self, handler: Any, who: Any, func: Any, types: Any, arguments: Any
    ) -> Any:
        """What a rule says of `who`, the mode or class, or what a handler does."""
        given, by_name = self.strip(*arguments)
        if isinstance(handler, ClassRule):
            return handler.function(who, func, types, given, by_name)
        return handler.__torch_dispatch__(func, types, given, by_name)


def check_stack(handler: Any, expected: Any) -> None:
    """Whether the modes are those that a handler was called with.

    They are after it has entered one and left it again, in another tuple.  Raises
    `ModeStackChanged`.
    """
    if STATE.stack is expected or alike(STATE.stack, expected):
        return
    raise ModeStackChanged(
        handler=handler_name(handler), left=names(STATE.stack), stack=names(expected)
    )


def _context(func: Any, stack: Any, found: Overloaded, arguments: Any) -> Any:
    """The context that a call belongs to.

    Raises `NothingToHandle`, `MixedContexts`, `ContextClosed`.
    """
    if not (stack or found):
        raise NothingToHandle(operator=str(func))
    # A tensor whose keys were set by hand has no context.
    here = STATE.context
    context = stack[-1].context if stack else getattr(found[0], "_context", here)
    if OTHERS:
        # Of a class that two tensors have, only the first one is in `found`.
        check_contexts(context, arguments, lambda: func)
    return context


def _not_implemented(func: Any, stack: Any, found: Overloaded) -> NoImplementation:
    modes = (f"the mode {named(stack[-1].mode)}",) if stack else ()
    classes = tuple(f"the class {type(each).__name__}" for each in found)
    return NoImplementation(operator=str(func), asked=(*modes, *classes))
