"""Rules: what a class of tensors or modes does for one operator, said from outside.

True only here: a rule stands before the handler of exactly that class.  It is called
`fn(cls_or_mode, func, types, args, kwargs)`: the mode itself for a class of modes, the
class for one of tensors; NotImplemented goes on to the next one that is asked.

Rules: there is one rule for an operator and a class; closing it brings the class's own
handler back; who calls an operator without rules pays for one look at an empty dict.
"""

from collections.abc import Callable
from typing import Any, Self

from runtime.dispatch.handle import OperatorHandle
from runtime.errors.python_dispatch import RuleTaken
from runtime.errors.registration import WrongArgument
from runtime.locks import renewed
from runtime.schema.excerpt import described

Rule = Callable[..., Any]

# operator handle -> class -> rule
RULES: dict[Any, dict[type, Rule]] = {}
_LOCK = renewed()


class RuleHandle:
    """Owns a rule; `close` takes it down, once."""

    __slots__ = ("_cls", "_func", "_live")

    def __init__(self, func: Any, cls: type) -> None:
        self._func = func
        self._cls = cls
        self._live = True

    def close(self) -> None:
        """Take the rule down; nothing happens the second time."""
        with _LOCK:
            if not self._live:
                return
            self._live = False
            rules = dict(RULES[self._func])
            del rules[self._cls]
            # Readers hold what they found: a dict is replaced, never changed.
            if rules:
                RULES[self._func] = rules
            else:
                del RULES[self._func]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def register_torch_dispatch(func: Any, cls: type, rule: Rule) -> RuleHandle:
    """Let `rule` handle the operator `func` for modes or tensors of class `cls`.

    `func` is an `OperatorHandle`.  Raises `RuleTaken`, and `WrongArgument` for an
    argument that is something else.
    """
    _check(
        "func", "an operator with its overload", isinstance(func, OperatorHandle), func
    )
    _check("cls", "a class", isinstance(cls, type), cls)
    _check("rule", "a function", callable(rule), rule)
    with _LOCK:
        rules = RULES.get(func, {})
        if cls in rules:
            raise RuleTaken(
                handler=f"{cls.__qualname__}.__torch_dispatch__", operator=str(func)
            )
        RULES[func] = {**rules, cls: rule}
    return RuleHandle(func, cls)


def _check(argument: str, expected: str, fits: bool, found: object) -> None:
    if not fits:
        raise WrongArgument(
            argument=argument, expected=expected, found=described(found)
        )


def rule_of(func: Any, cls: type) -> Rule | None:
    """The rule of an operator for a class."""
    rules = RULES.get(func)
    return None if rules is None else rules.get(cls)
