"""Errors of dispatch to Python: handlers, classes of tensors, modes, contexts.

Who must act: the author of a handler (`HandlerError`, `EndlessDispatch`) or of a class
of tensors (`SubclassError`), whoever enters and leaves modes (`ModeStackError`), or
whoever opens, enters or mixes contexts (`ContextError`).

Rules: classes, modes, tensors and contexts are named by text, so that an error keeps
nothing alive; an exception that a handler raises is never wrapped, but for endless
recursion.
"""

from everyorder.runtime.errors.base import EveryorderError


class PythonDispatchError(EveryorderError):
    """Dispatch to Python is used as it cannot be."""


class HandlerError(PythonDispatchError):
    """A `__torch_dispatch__` is not what it has to be, or no answer comes of it.

    `handler` names it, `operator` is what was called, as a handler sees it; `asked` are
    the mode and the classes that were asked, in that order.
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
      to do: take `@{found}` away: `def __torch_dispatch__(self, ...)`
    HandlerNotCallable (TypeError): `{handler}` is {found}, which cannot be called.
      to do: make it a classmethod, or `disabled` for no handler at all
    ModeWithoutHandler (TypeError): There is no `{handler}` that could be asked: the
        mode cannot be entered.
      to do: define `def __torch_dispatch__(self, func, types, args=(), kwargs=None)`
    WrongHandlerResult (TypeError): `{handler}` handled `{operator}`, and its result is
        not what the operator returns.
      found: {problem}
      schema: {schema}
    WrongDetach (TypeError): `{handler}` was asked to detach a tensor for {operator} and
        returned {found}, which is no tensor.
      to do: return a tensor on the same elements for `core::detach`
    WrongSuperCall (TypeError): `{handler}` takes {expected} as `{argument}`, and was
        given {found}.
    NoImplementation (TypeError): Nobody handles `{operator}`: every
        `__torch_dispatch__` that was asked returned NotImplemented.
      asked: {asked:, }
      to do: return a result for the operator from one of them
    UndefinedResult (RuntimeError): The gradient of `{operator}` is computed from its
        result `{result}`, and a `__torch_dispatch__` returned None for that.
      to do: return a tensor, or call the operator in no_grad()
    OutsideOfHandler (RuntimeError): `{call}` brings back what held when dispatch to
        Python began, and no handler runs in this thread.
      to do: call it inside of a `__torch_dispatch__`
    NothingToHandle (RuntimeError): `{operator}` was dispatched to Python, but no mode
        is entered and no argument is of a class with a `__torch_dispatch__`.
      to do: enter a mode instead of including the key Python
    WrapperOfAnotherClass (RuntimeError, TypeError): A result of `{operator}` shows
        `{argument}`, which is a `{expected}`, and is a `{found}`: only wrappers of one
        class can share a storage.
      to do: wrap the result in a `{expected}`
    WrongResultCount (RuntimeError, TypeError): `{operator}` returns {expected} values,
        and what was to be corrected is {found}.
    UnsupportedAliases (RuntimeError, TypeError): The results of `{operator}` cannot be
        corrected: {reason}.
      schema: {schema}
      to do: let the handler itself return what its schema says
    """


class EndlessDispatch(PythonDispatchError, RecursionError):
    """A handler called its own operator on its own tensors, until Python gave up.

    `depth` counts the handlers that were running.
    """

    handler: str
    operator: str
    depth: int

    words = """
    EndlessDispatch: `{handler}` handled `{operator}` inside of itself {depth} times,
        and Python's recursion ends there.
      to do: call the operator on what the tensor wraps, or call
        `super().__torch_dispatch__`, or call it inside of `no_dispatch()`
    """


class SubclassError(PythonDispatchError, TypeError, ValueError):
    """A class of tensors is not made, or not used, as it has to be; `cls` names it."""

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
    AlreadyWrapped: The tensor is a `{found}` already, and its handler gave a `{found}`
        when it was detached; it cannot become a `{cls}`.
      to do: let `{cls}` wrap it: `_make_wrapper_subclass` and an attribute
    NotMade: `{cls}(...)` makes no tensor by itself.
      to do: {_remedy}
    NoElements: The elements of a `{cls}` were asked for, which is a wrapper and has
        none of its own.
      to do: let its `__torch_dispatch__` compute with what it wraps; kernels, and calls
        with the handler switched off, know nothing of that
    NotForSubclasses: {asked} would read a `{cls}` behind the back of its
        `__torch_dispatch__`.
      to do: read what it wraps; where it has elements of its own, inside of
        `no_dispatch()` what `clone()` returns
    UnknownPolicy: `{cls}` was made with dispatch_sizes_strides_policy={found!r}; it is
        {_choices}, or left out.
    WrongMetadata: A `{cls}` asked `{operator}` and was told {found}: no size, stride,
        offset or number of dimensions is negative.
      to do: answer in its handler with what it has, or None for the default
    NotAWrapper: A `{cls}` cannot be taken apart: it has no `{missing:` and no `}`.
      to do: define `__tensor_flatten__(self)`, which returns the names of its tensors
        and a context, and the static method `__tensor_unflatten__(tensors, context,
        size, strides)`
    WrongParts: `{cls}.__tensor_flatten__()` gave {found}; it is to return a pair: the
        names of the attributes that hold its tensors, and a context.
    WrongWhole: `{cls}.__tensor_unflatten__(...)` gave {found}; it is to return
        {expected}, as was taken apart.
    WrongTensorCount: A `{cls}` is made of {expected} tensors, and {found} were given.
    UnsupportedForWrappers: A `{cls}` cannot be made with {option}={found}: it has no
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

    @property
    def _choices(self) -> str:
        return " or ".join(map(repr, self.known))


class ModeStackError(PythonDispatchError, RuntimeError):
    """The stack of modes is not as it has to be.

    Modes are named by their classes; `stack` names those that are entered, outermost
    first, and `left` those that a handler left.
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
    ModeStackChanged: `{handler}` left other modes than it was called with,
        {left:, |none}; they are as before again.
      to do: enter modes by `with`
    EmptyModeStack: {_asked}
    NoModeAtPlace: There is no mode at place {place} of {_entered}.
    ModeNotInnermost: {mode} is left, but {_innermost} is the innermost mode.
      to do: leave modes in the reverse of the order they were entered in, in the thread
        that entered them
    ModeNotEntered: {mode} is left, and it is not entered in this thread.
      to do: leave it once for each time that it was entered
    ModeSlotTaken: {mode} is entered, but the place {place} is that of {holder}.
      to do: leave the other one first
    NoModeSlot: {mode} is entered, and there is no place {place} for infra modes.
      to do: let `infra` be None, {known:, / or }
    PutAsideElsewhere: Modes were put aside in another thread than the one that wants
        them back.
      to do: leave what puts modes aside in the thread that entered it
    """

    @property
    def _asked(self) -> str:
        if self.mode:
            return f"{self.mode} is left, and no mode is entered in this thread."
        return "The innermost mode was asked for, and no mode is entered."

    @property
    def _entered(self) -> int:
        return len(self.stack)

    @property
    def _innermost(self) -> str:
        return self.stack[-1]


class ContextError(PythonDispatchError, RuntimeError):
    """A context is used as it cannot be; `context` names it.

    `operator` is the operator as handlers see it, or as it was registered; `key` is
    empty for a definition; `beside` says that a kernel is there which knows nothing of
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
    MixedContexts: `{operator}` was called with what belongs to the context `{context}`
        and to `{other}`: neither can handle both.
      to do: unwrap the tensors of one, and wrap them in the other
    WrappedElsewhere: `{call}` was given a `{cls}` of the context `{other}` in the
        context `{context}`: which context handles a tensor never changes.
      to do: wrap what the tensor wraps, or hold it as an attribute
    ContextClosed: `{asked}` needs the context `{context}`, which is closed.
      to do: let go of its tensors and modes before it is closed
    MainStaysOpen: `{context}` is the main context, which is there from the start to the
        end.
      to do: close its libraries, or the contexts beside it
    ContextNotEntered: The context `{context}` is left, and the thread is in
        `{current}`.
      to do: enter contexts by `with`, and leave each in its own thread
    NotVerified: The context `{context}` registered {_what}`{operator}`, and waited
        {timeout:g} s in vain for the main context to do the same.
      found: {_other_kernel}
      to do: do the same in every context, the main one first: its libraries come from
        `MAIN.library(...)`, and each module has to be imported there, too; or let the
        context wait longer: `Context.timeout`
    SchemaDiffers: The context `{context}` defined `{operator}` in another way than the
        main context.
      here: {schema}
      there: {expected}
      to do: define it alike, or under another name
    NoCopy: `{operator}` has a kernel at {key} of which every context runs its own copy,
        and `{context}` has none.
      to do: register it in `{context}` by its own `library(...)`
    """

    @property
    def _what(self) -> str:
        return f"a kernel at {self.key} for " if self.key else "a definition of "

    @property
    def _other_kernel(self) -> str:
        return "a kernel of a library that is no context's: all run it" * self.beside
