"""Rules: what a class of tensors or modes does for one operator, said from outside.

True only here: what a rule means, and rules that no library owns.  A rule stands before
the handler of exactly its class.  It is called `fn(cls_or_mode, func, types, args,
kwargs)`: the mode itself for a class of modes, the class for one of tensors;
NotImplemented goes on to the next one that is asked.

Rules:
- a rule is a registration (`runtime.dispatch.token.ClassRule`): it is live by its
  operator's name, defined or not, and stands in the state of its dispatcher;
- there is one rule for an operator and a class; closing it brings the class's own
  handler back;
- an operator without rules pays nothing for those of others.
"""

from collections.abc import Callable
from typing import Any

from runtime.dispatch.arguments import origin_of_caller, rule_for
from runtime.dispatch.dispatcher import Dispatcher
from runtime.dispatch.handle import OperatorHandle
from runtime.dispatch.registration import Registration, registered
from runtime.errors.registration import WrongArgument


def register_torch_dispatch(
    func: Any, cls: type, fn: Callable[..., Any]
) -> Registration:
    """Let `fn` handle the operator `func` for modes or tensors of class `cls`.

    `func` is an `OperatorHandle`.  Keep the registration: nothing else can end it, and
    losing it ends nothing.  `Library.rule` makes one that ends with its library.

    Raises:
        WrongArgument: an argument is something else.
        RuleTaken: the class has a rule for the operator.
        WriteInsideListener: called by a listener.
    """
    if not isinstance(func, OperatorHandle):
        found, expected = type(func).__name__, "an operator with its overload"
        raise WrongArgument(argument="func", expected=expected, found=found)
    dispatcher = func.dispatcher
    assert isinstance(dispatcher, Dispatcher), "handles are made for dispatchers"
    token = rule_for(func.name, cls, fn, None, origin_of_caller())
    return registered(dispatcher, {}, (token,))
