"""Errors of operator calls: the arguments, the kernel, the returns.

Who must act: the caller (`CallError`, `NoMatchingOverload`), the author of a kernel
(`KernelError`), or the author of the registrations (`CannotRun`, `OperatorGone`).

Rule: every field is text or a number, so that the same call fails with equal fields in
every process: values are shortened, and addresses removed, before the error is created.
"""

from everyorder.runtime.errors.base import EveryorderError

# Reason -> why the call found no kernel, and what to do.
REASONS = {
    "no kernel": (
        "no kernel is registered for {key}",
        "register a kernel for {key}, or move the arguments to a device that has one",
    ),
    "all keys fell through": (
        "every key of the call is a fallthrough",
        "register a kernel for one of the keys of the call",
    ),
    "all keys excluded": (
        "every key of the call is excluded on this thread",
        "call outside of exclude_keys, or exclude less",
    ),
    "no tensor arguments": (
        "the call has no tensor to choose a kernel by",
        "pass a tensor, or register a kernel for BackendSelect or "
        "CompositeExplicitAutograd",
    ),
    "nothing to redispatch to": (
        "the key set of the redispatch names no key",
        "redispatch with the keys of the call below the kernel's own key",
    ),
}


def _for_arrays(expected: str, argument: str) -> str:
    """Return the advice for a NumPy array where a tensor is expected, or ""."""
    if "Tensor" not in expected or not argument.endswith("ndarray"):
        return ""
    return "runtime.from_numpy(x) makes a tensor of an array"


class CallError(EveryorderError, TypeError, RuntimeError):
    """A call does not fit the schema of its operator.

    `call` is the call as written, with long values shortened.
    """

    operator: str
    call: str
    schema: str
    missing: tuple[str, ...] = ()
    maximum: int = 0
    given: int = 0
    keyword_only: tuple[str, ...] = ()
    argument: str = ""
    near: tuple[str, ...] = ()
    position: int = 0
    expected: str = ""
    found: str = ""
    value: str = ""

    rows = (("call", "{call}"), ("schema", "{schema}"))

    words = """
    MissingArgument: `{operator}` was called without `{missing:`, `/` and `}`, which
        {_verb}.
    TooManyArguments: `{operator}` takes at most {maximum:count positional argument},
        but {given} {_verb} given.
      by name: {keyword_only:, }
    UnknownArgument: `{operator}` has no argument `{argument}`.
      near: {near:, }
    DuplicateArgument: `{operator}` got `{argument}` twice: as positional argument
        {_place} and by name.
    WrongArgumentType: Argument {_place} of `{operator}`, `{argument}`, takes
        `{expected}`, but was given {found}.
      value: {value}
      to do: {_remedy}
    """

    @property
    def _place(self) -> int:
        return self.position + 1

    @property
    def _verb(self) -> str:
        if self.code == "TooManyArguments":
            return "was" if self.given == 1 else "were"
        return "has no default" if len(self.missing) == 1 else "have no defaults"

    @property
    def _remedy(self) -> str:
        return _for_arrays(self.expected, self.found)


class NoMatchingOverload(EveryorderError, TypeError, RuntimeError):
    """The call fits none of the overloads; `attempts` are (overload, reason)."""

    operator: str
    attempts: tuple[tuple[str, str], ...]

    words = """
    NoMatchingOverload |
        The call fits none of {_tried:count overload} of `{operator}`.{_reasons}
    """

    @property
    def _tried(self) -> int:
        return len(self.attempts)

    @property
    def _reasons(self) -> str:
        blocks = []
        for overload, text in self.attempts:
            body = "\n".join(f"    {line}" for line in text.splitlines())
            blocks.append(f"\n  {overload or 'default'}:\n{body}")
        return "".join(blocks)


class KernelError(EveryorderError, RuntimeError):
    """A kernel, or a function of a custom operator, broke the contract of its operator.

    Its author must act.  `result` and `other` name the values that share memory; `same`
    is true if they are one tensor, `written` if the operator writes to it.
    """

    operator: str
    expected: int | str = 0
    found: int | str = 0
    schema: str = ""
    position: int | None = None
    value: str = ""
    kernel: str = ""
    popped: int = 0
    pushed: int = 0
    expected_popped: int = 0
    expected_pushed: int = 0
    key: str = ""
    result: str = ""
    other: str = ""
    same: bool = False
    written: bool = False
    argument: str = ""
    fault: str = ""
    arguments: tuple[str, ...] = ()

    words = """
    WrongReturnCount (TypeError): A kernel of `{operator}` should return
        {expected:count value}, but returned {found}.
      schema: {schema}
    WrongReturnType (TypeError): A kernel of `{operator}` should return
        {expected}{_which}, but returned {found}.
      value: {value}
      schema: {schema}
      to do: {_remedy}
    StackMismatch (TypeError): A boxed kernel of `{operator}` left the stack wrong.
      kernel: {kernel}
      did: pop {popped}, push {pushed}
      must: pop {expected_popped}, push {expected_pushed}
    FallthroughCalled (TypeError): `{operator}` was redispatched to {key}, where it
        has only a fallthrough and no kernel to run.
      to do: redispatch with a key set below the fallthrough key
    AliasedResult: `{operator}` ({kernel}) returned {result} that {_how} {other}, which
        its schema rules out.
      schema: {schema}
      to do: {_remedy}
    OtherResult: `{operator}` ({kernel}) returned {result} that is not its argument
        `{argument}`, as its schema promises.
      schema: {schema}
      to do: write to {argument!r} in place, and return it
    GradientStructure: The backward of `{operator}` {fault}.
      returns: {arguments:, |nothing}
      that is: a gradient or None for each positional argument, for a list of tensors a
        list of its length
    """

    @property
    def _which(self) -> str:
        return "" if self.position is None else f" as return {self.position + 1}"

    @property
    def _how(self) -> str:
        return "is" if self.same else "shares memory with"

    @property
    def _remedy(self) -> str:
        if self.code == "WrongReturnType":
            return _for_arrays(str(self.expected), str(self.found))
        if not (self.same and self.written):
            return "return a copy (`.clone()`), or leave it out of the results"
        return (
            "return None; or, if the operator should return the argument that it "
            "writes to, declare it: tags='inplace', or 'out'"
        )


class CannotRun(EveryorderError, RuntimeError):
    """An operator cannot be called as registered; its registrations must change."""

    operator: str
    state: str = ""

    words = """
    AmbiguousKernel: `{operator}` is ambiguous at AutogradOther: it has a
        CompositeImplicitAutograd kernel, and also a kernel for a backend whose autograd
        key is AutogradOther. The composite would hide the backend's.
      to do: register a kernel for AutogradOther, or call without autograd
    NamedNotSupported: `{operator}` has no rule for named dimensions.
      to do: drop the names, call, and name the result
    CallWithoutSchema: `{operator}` has no schema: kernels are registered, but no
        definition.
      to do: define it, then call
    """

    def render(self) -> str:
        """Return the sentence, and the dumped state if there is one."""
        dumped = self.state.rstrip()
        return f"{super().render()}\n\n{dumped}" if dumped else super().render()


class MissingKernel(CannotRun, NotImplementedError):
    """Dispatch ended at a slot without a kernel.

    `reason` is a key of `REASONS`; `key` is the slot, `keyset` the keys that dispatch
    started with; `table` is the dumped dispatch table, possibly empty.
    """

    key: str
    keyset: str
    available: tuple[str, ...]
    table: str
    reason: str

    words = """
    MissingKernel: `{operator}` cannot run: {_why}.
      keys: {keyset}
      kernels: {available:, |none}
      to do: {_advice}
    """

    def render(self) -> str:
        """Return the reason, the keys that do have kernels, and the table."""
        table = self.table.rstrip()
        return f"{super().render()}\n\n{table}" if table else super().render()

    @property
    def _why(self) -> str:
        return REASONS[self.reason][0].format(key=self.key)

    @property
    def _advice(self) -> str:
        return REASONS[self.reason][1].format(key=self.key)


class OperatorGone(EveryorderError, RuntimeError):
    """The operator behind this object was deregistered or redefined."""

    operator: str = ""
    known: str = ""
    found: str = ""

    words = """
    OperatorGone: `{operator}` has been deregistered.
      to do: keep its Library open, or look the operator up again
    OperatorChanged: `{operator}` is defined with another schema now.
      known: {known}
      found: {found}
      to do: compile its callers again, or restore the old definition
    OverloadGone (AttributeError): `{operator}` has been deregistered.
      to do: keep its Library open, or look the operator up again
    """


class ExitCalledAgain(EveryorderError, RuntimeError):
    """The `__exit__` of a context manager was stored, and called a second time."""

    words = """
    ExitCalledAgain: An exit that was read from a context manager leaves one block, and
        has left it.
      to do: use `with`; or read `__exit__` again for each block that was entered
    """


class NotOffered(EveryorderError, NotImplementedError):
    """A name of torch that the runtime does not offer; `remedy` says what to use."""

    asked: str
    reason: str
    remedy: str

    words = """
    NotOffered: `{asked}` is not offered: {reason}.
      to do: {remedy}
    """
