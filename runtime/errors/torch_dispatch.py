"""Errors of dispatch to Python: handlers, classes of tensors, modes, contexts.

Who must act: the author of a handler (`HandlerError`, `EndlessDispatch`) or of a class
of tensors (`SubclassError`), or the code that enters and exits modes
(`ModeStackError`), or that opens, enters or mixes contexts (`ContextError`).

Rules: classes, modes, tensors and contexts are named by text, so that an error keeps
nothing alive; an exception that a handler raises is never wrapped, except for endless
recursion.
"""

from everyorder.runtime.errors.base import EveryorderError


class PythonDispatchError(EveryorderError):
    """Base: dispatch to Python is used incorrectly."""


class HandlerError(PythonDispatchError):
    """A `__torch_dispatch__` is invalid, or did not return a valid result.

    `handler` names it, `operator` is the called operator, as a handler sees it; `asked`
    are the mode and the classes that were called, in that order.
    """

    handler: str = ""
    found: str = ""
    operator: str = ""
    problem: str = ""
    schema: str = ""
    argument: str = ""
    expected: str | int = ""
    asked: tuple[str, ...] = ()
    result: str = ""
    call: str = ""
    reason: str = ""

    words = """
    PlainHandler (TypeError): `{handler}` is a plain method: it would be called with a
        class for `self`.
      to do: put `@classmethod` above it, and call its first parameter cls
    ClassHandler (TypeError): `{handler}` is a {found}, but modes are objects: their
        handler is called on the one that was entered.
      to do: remove `@{found}`: `def __torch_dispatch__(self, ...)`
    HandlerNotCallable (TypeError): `{handler}` is {found}, which cannot be called.
      to do: make it a classmethod, or `disabled` for no handler at all
    ModeWithoutHandler (TypeError): `{handler}` is not defined: the mode cannot be
        entered.
      to do: define `def __torch_dispatch__(self, func, types, args=(), kwargs=None)`
    WrongHandlerResult (TypeError): `{handler}` handled `{operator}`, and its result is
        not what the operator returns.
      found: {problem}
      schema: {schema}
    WrongDetach (TypeError): `{handler}` was called to detach a tensor for {operator}
        and returned {found}, which is not a tensor.
      to do: return a tensor on the same elements for `core::detach`
    WrongSuperCall (TypeError): `{handler}` takes {expected} as `{argument}`, and was
        given {found}.
    NoImplementation (TypeError): No handler supports `{operator}`: every
        `__torch_dispatch__` that was called returned NotImplemented.
      asked: {asked:, }
      to do: return a result for the operator from one of them
    UndefinedResult (RuntimeError): The gradient of `{operator}` is computed from its
        result `{result}`, and a `__torch_dispatch__` returned None for that.
      to do: return a tensor, or call the operator in no_grad()
    OutsideOfHandler (RuntimeError): `{call}` restores the state at the start of
        dispatch to Python, and no handler runs in this thread.
      to do: call it inside of a `__torch_dispatch__`
    NothingToHandle (RuntimeError): `{operator}` was dispatched to Python, but no mode
        is entered and no argument is of a class with a `__torch_dispatch__`.
      to do: enter a mode instead of including the key Python
    WrapperOfAnotherClass (RuntimeError, TypeError): A result of `{operator}` aliases
        `{argument}`, which is a `{expected}`, and is a `{found}`: only wrappers of one
        class can share a storage.
      to do: wrap the result in a `{expected}`
    WrongResultCount (RuntimeError, TypeError): `{operator}` returns {expected} values,
        but the result to correct is {found}.
    UnsupportedAliases (RuntimeError, TypeError): The results of `{operator}` cannot be
        corrected: {reason}.
      schema: {schema}
      to do: let the handler itself return what its schema says
    """


class EndlessDispatch(PythonDispatchError, RecursionError):
    """A handler called its own operator on its own tensors up to the recursion limit.

    `depth` counts the handlers that were running.
    """

    handler: str
    operator: str
    depth: int

    words = """
    EndlessDispatch: `{handler}` handled `{operator}` inside of itself {depth} times,
        and Python's recursion ends there.
      to do: call the operator on the wrapped tensor, or call
        `super().__torch_dispatch__`, or call it inside of `no_dispatch()`
    """


class SubclassError(PythonDispatchError, TypeError, ValueError):
    """A class of tensors is created or used incorrectly; `cls` names it."""

    call: str = ""
    argument: str = ""
    expected: str | int = ""
    found: str | int = ""
    cls: str = ""
    asked: str = ""
    known: tuple[str, ...] = ()
    operator: str = ""
    missing: tuple[str, ...] = ()
    option: str = ""
    fits: str = ""

    words = """
    NotATensorClass: `{call}` takes {expected} as `{argument}`, and was given {found}.
    NoHandler: `{cls}` defines no `__torch_dispatch__`, and a wrapper without one could
        do nothing: it has no elements.
      to do: define the handler, or call `_make_subclass` on a tensor
    AlreadyWrapped: The tensor is a `{found}` already, and its handler returned a
        `{found}` when it was detached; it cannot become a `{cls}`.
      to do: let `{cls}` wrap it: `_make_wrapper_subclass` and an attribute
    StaysHandled: A `{found}` has a handler, and a plain `{cls}` on its elements would
        hide them from it.
      to do: return the tensor that it wraps, from a method or an attribute of `{found}`
    NotMade: `{cls}(...)` does not create a tensor.
      to do: {_remedy}
    NoElements: The elements of a `{cls}` were requested, which is a wrapper and has no
        elements.
      to do: let its `__torch_dispatch__` compute with the wrapped tensor; kernels, and
        calls with the handler switched off, cannot access that
    NotForSubclasses: {asked} would read a `{cls}` and bypass its `__torch_dispatch__`.
      to do: read the wrapped tensor; if the class has elements, read the result of
        `clone()` inside of `no_dispatch()`
    UnknownPolicy: `{cls}` was created with dispatch_sizes_strides_policy={found!r};
        expected {known!r: or }, or no such argument.
    WrongMetadata: A `{cls}` called `{operator}` and got {found}: a size, a stride, an
        offset or a number of dimensions cannot be negative.
      to do: return the value from its handler, or None for the default
    NotAWrapper: A `{cls}` cannot be flattened: it has no `{missing:` and no `}`.
      to do: define `__tensor_flatten__(self)`, which returns the names of its tensors
        and a context, and the static method `__tensor_unflatten__(tensors, context,
        size, strides)`
    WrongParts: `{cls}.__tensor_flatten__()` returned {found}; expected a pair: the
        names of the attributes that hold its tensors, and a context.
    WrongWhole: `{cls}.__tensor_unflatten__(...)` returned {found}; expected {expected},
        as was flattened.
    WrongTensorCount: A `{cls}` consists of {expected} tensors, but got {found}.
    UnsupportedForWrappers: A `{cls}` cannot have {option}={found}: it has no
        elements.
      fits: {fits}
    """

    @property
    def _remedy(self) -> str:
        if self.cls == "Tensor":
            return "call `runtime.tensor(data)`, `runtime.empty(sizes)`, ..."
        return (
            f"call `tensor.as_subclass({self.cls})`, or define `__new__` with "
            "`Tensor._make_subclass` or `Tensor._make_wrapper_subclass`"
        )


class ModeStackError(PythonDispatchError, RuntimeError):
    """The stack of modes is used incorrectly, or a handler changed it.

    Modes are named by their classes; `stack` names those that are entered, outermost
    first, and `left` those that were entered when a handler returned.
    """

    stack: tuple[str, ...]
    handler: str = ""
    left: tuple[str, ...] = ()
    mode: str = ""
    place: int | str = 0
    holder: str = ""
    known: tuple[str, ...] = ()

    rows = (("modes", "{stack:, |none are entered}"),)

    words = """
    ModeStackChanged: `{handler}` returned with other modes entered than at its call,
        {left:, |none}; the modes before the call are restored.
      to do: enter modes by `with`
    FunctionMode: {mode} is entered, and functions of tensors are not handed to modes.
      to do: derive it from `TorchDispatchMode`, and define `__torch_dispatch__`, which
        gets the operators
    EmptyModeStack: [[{mode} is exited, and no mode is entered in this thread.||The
        innermost mode was requested, and no mode is entered.]]
    NoModeAtPlace: There is no mode at place {place} of {_entered}.
    ModeNotInnermost: {mode} is exited, but {_innermost} is the innermost mode.
      to do: exit modes in the reverse of the order they were entered in, in the thread
        that entered them
    ModeNotEntered: {mode} is exited, and it is not entered in this thread.
      to do: exit it once for each time that it was entered
    ModeSlotTaken: {mode} is entered, but {holder} occupies the place {place}.
      to do: exit the other one first
    NoModeSlot: {mode} is entered, and there is no place {place} for infra modes.
      to do: let `infra` be None, {known:, / or }
    PutAsideElsewhere: Modes were suspended in another thread than the one that restores
        them.
      to do: exit the context that suspends modes in the thread that entered it
    """

    @property
    def _entered(self) -> int:
        return len(self.stack)

    @property
    def _innermost(self) -> str:
        return self.stack[-1]


class ContextError(PythonDispatchError, RuntimeError):
    """A context is used incorrectly; `context` names it.

    `operator` is the operator as handlers see it, or as it was registered; `key` is
    empty for a definition; `beside` is true if a kernel is registered that ignores
    contexts.
    """

    context: str
    operator: str = ""
    other: str = ""
    call: str = ""
    cls: str = ""
    asked: str = ""
    current: str = ""
    key: str = ""
    timeout: float = 0.0
    beside: bool = False
    schema: str = ""
    expected: str = ""

    words = """
    MixedContexts: `{operator}` was called with tensors or modes of the context
        `{context}` and of `{other}`: neither can handle both.
      to do: unwrap the tensors of one, and wrap them in the other
    WrappedElsewhere: `{call}` was given a `{cls}` of the context `{other}` in the
        context `{context}`: the context that handles a tensor never changes.
      to do: wrap the inner tensor, or hold it as an attribute
    ContextClosed: `{asked}` needs the context `{context}`, which is closed.
      to do: release its tensors and modes before it is closed
    MainStaysOpen: `{context}` is the main context, which cannot be closed.
      to do: close its libraries, or the other contexts
    ContextNotEntered: The context `{context}` is exited, and the thread is in
        `{current}`.
      to do: enter contexts by `with`, and exit each in the thread that entered it
    NotVerified: The context `{context}` registered [[a kernel at {key} for||a
        definition of]] `{operator}`, and waited {timeout:g} s in vain for the main
        context to do the same.
      found: {_other_kernel}
      to do: do the same in every context, the main one first: its libraries come from
        `MAIN.library(...)`, and each module has to be imported there, too; or let the
        context wait longer: `Context.timeout`
    SchemaDiffers: The context `{context}` defined `{operator}` in another way than the
        main context.
      here: {schema}
      there: {expected}
      to do: define it alike, or under another name
    NoCopy: `{operator}` has a kernel at {key} of which every context runs a separate
        copy, and `{context}` has none.
      to do: register it in `{context}` by `{context}.library(...)`
    """

    @property
    def _other_kernel(self) -> str:
        text = "a kernel of a library outside of all contexts: every context runs it"
        return text if self.beside else ""
