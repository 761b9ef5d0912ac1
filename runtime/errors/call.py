"""Errors of calling an operator: its arguments, its kernel, its returns.

Who must act: the caller (`CallError` and its leaves), the author of a kernel
(`KernelError` and its leaves), or whoever registers kernels (the rest).

Rules: every field is text or a number, so that the same call fails with equal fields
in every process: values are shortened, and addresses taken out, before they get here.
`page` is the one layout: a sentence, then labelled rows, within 80 columns.
"""

from dataclasses import dataclass
from typing import ClassVar

from runtime.errors.base import EveryorderError

# The width of a terminal by convention; rendered errors are tested at it.
COLUMNS = 80


def page(head: str, *rows: tuple[str, str]) -> str:
    """A sentence and its labelled rows, each wrapped at `COLUMNS`."""
    from textwrap import TextWrapper

    wrapper = TextWrapper(COLUMNS, break_long_words=False, break_on_hyphens=False)
    lines = wrapper.wrap(head)
    margin = max((len(label) for label, _ in rows), default=0) + 4
    wrapper.subsequent_indent = " " * margin
    for label, text in rows:
        wrapper.initial_indent = f"  {label}:".ljust(margin)
        lines += wrapper.wrap(text)
    return "\n".join(lines)


def _row(label: str, *names: str) -> tuple[tuple[str, str], ...]:
    return ((label, ", ".join(names)),) if names else ()


def _array_row(expected: str, found: str) -> tuple[tuple[str, str], ...]:
    """What to do where a tensor is expected, and NumPy's arrays were found."""
    if "Tensor" not in expected or not found.endswith("ndarray"):
        return ()
    return (("to do", "runtime.from_numpy(x) makes a tensor of an array"),)


def _quoted(names: tuple[str, ...]) -> str:
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} and {last}" if most else last


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@dataclass(eq=False, kw_only=True)
class CallError(EveryorderError, TypeError):
    """A call does not fit the schema of its operator.

    `call` is the call as written, with long values cut short.
    """

    operator: str
    call: str
    schema: str

    def _page(self, head: str, *rows: tuple[str, str]) -> str:
        return page(head, ("call", self.call), ("schema", self.schema), *rows)


@dataclass(eq=False, kw_only=True)
class MissingArgument(CallError):
    """Arguments without a default were not given: pass them."""

    missing: tuple[str, ...]

    def render(self) -> str:
        """Which arguments, the call and the schema."""
        verb = "has no default" if len(self.missing) == 1 else "have no defaults"
        return self._page(
            f"`{self.operator}` was called without {_quoted(self.missing)}, "
            f"which {verb}."
        )


@dataclass(eq=False, kw_only=True)
class TooManyArguments(CallError):
    """More positional arguments than the schema has: name the keyword-only ones."""

    maximum: int
    given: int
    keyword_only: tuple[str, ...]

    def render(self) -> str:
        """The two counts, and what must be passed by name."""
        verb = "was" if self.given == 1 else "were"
        return self._page(
            f"`{self.operator}` takes at most "
            f"{_counted(self.maximum, 'positional argument')}, "
            f"but {self.given} {verb} given.",
            *_row("by name", *self.keyword_only),
        )


@dataclass(eq=False, kw_only=True)
class UnknownArgument(CallError):
    """A keyword that the schema does not have: see the near names."""

    argument: str
    near: tuple[str, ...]

    def render(self) -> str:
        """The keyword and the nearest names."""
        head = f"`{self.operator}` has no argument `{self.argument}`."
        return self._page(head, *_row("near", *self.near))


@dataclass(eq=False, kw_only=True)
class DuplicateArgument(CallError):
    """An argument was given twice, by position and by name: drop one."""

    argument: str
    position: int

    def render(self) -> str:
        """The argument and the position that already fills it."""
        return self._page(
            f"`{self.operator}` got `{self.argument}` twice: as positional argument "
            f"{self.position + 1} and by name."
        )


@dataclass(eq=False, kw_only=True)
class WrongArgumentType(CallError):
    """The value of an argument is not of, and does not convert to, its type."""

    argument: str
    position: int
    expected: str
    found: str
    value: str

    def render(self) -> str:
        """The argument, its type, and what was found."""
        return self._page(
            f"Argument {self.position + 1} of `{self.operator}`, `{self.argument}`, "
            f"takes `{self.expected}`, but was given {self.found}.",
            ("value", self.value),
            *_array_row(self.expected, self.found),
        )


@dataclass(eq=False, kw_only=True)
class WrongValue(EveryorderError, TypeError):
    """A value is not of, and does not convert to, a schema type."""

    expected: str
    found: str
    value: str

    def render(self) -> str:
        """The type and what was found."""
        head = f"Expected a value for `{self.expected}`, found {self.found}."
        return page(head, ("value", self.value))


@dataclass(eq=False, kw_only=True)
class KernelError(EveryorderError):
    """A kernel broke the contract of its operator: its author must act."""

    operator: str


@dataclass(eq=False, kw_only=True)
class WrongReturnCount(KernelError, TypeError):
    """A kernel returned another number of values than the schema has returns."""

    expected: int
    found: int
    schema: str

    def render(self) -> str:
        """Both counts and the schema."""
        return page(
            f"A kernel of `{self.operator}` should return "
            f"{_counted(self.expected, 'value')}, but returned {self.found}.",
            ("schema", self.schema),
        )


@dataclass(eq=False, kw_only=True)
class WrongReturnType(KernelError, TypeError):
    """A kernel returned a value that is not of the return's type.

    `position` is None where the returned object as a whole has the wrong form.
    """

    position: int | None
    expected: str
    found: str
    value: str
    schema: str

    def render(self) -> str:
        """Which return, its type, and what came."""
        which = "" if self.position is None else f" as return {self.position + 1}"
        return page(
            f"A kernel of `{self.operator}` should return {self.expected}{which}, "
            f"but returned {self.found}.",
            ("value", self.value),
            ("schema", self.schema),
            *_array_row(self.expected, self.found),
        )


@dataclass(eq=False, kw_only=True)
class StackMismatch(KernelError, RuntimeError):
    """A boxed kernel did not pop its arguments and push its returns, exactly."""

    kernel: str
    popped: int
    pushed: int
    expected_popped: int
    expected_pushed: int

    def render(self) -> str:
        """What the kernel did to the stack, and what it had to do."""
        return page(
            f"A boxed kernel of `{self.operator}` left the stack wrong.",
            ("kernel", self.kernel),
            ("did", f"pop {self.popped}, push {self.pushed}"),
            ("must", f"pop {self.expected_popped}, push {self.expected_pushed}"),
        )


@dataclass(eq=False, kw_only=True)
class FallthroughCalled(KernelError, RuntimeError):
    """The kernel that is never called was called, by a redispatch to its own key."""

    key: str

    def render(self) -> str:
        """The operator and key, and how it comes about."""
        return page(
            f"`{self.operator}` was redispatched to {self.key}, where it falls through "
            "and has nothing to run.",
            ("to do", "redispatch with a key set below the fallthrough key"),
        )


@dataclass(eq=False, kw_only=True)
class MissingKernel(EveryorderError, NotImplementedError):
    """Dispatch ended at a slot without a kernel.

    `reason` is one of `REASONS`; `key` is where the call ended, `keyset` what it
    started from; `table` is the dumped dispatch table, possibly empty.
    """

    REASONS: ClassVar[dict[str, str]] = {
        "no kernel": "no kernel is registered for {key}",
        "all keys fell through": "every key of the call is a fallthrough",
        "all keys excluded": "every key of the call is excluded on this thread",
        "no tensor arguments": "the call has no tensor to choose a kernel by",
        "nothing to redispatch to": "the key set of the redispatch names no key",
    }
    ADVICE: ClassVar[dict[str, str]] = {
        "no kernel": "register a kernel for {key}, or move the arguments to a device "
        "that has one",
        "all keys fell through": "register a kernel for one of the keys of the call",
        "all keys excluded": "call outside of exclude_keys, or exclude less",
        "no tensor arguments": "pass a tensor, or register a kernel for "
        "BackendSelect or CompositeExplicitAutograd",
        "nothing to redispatch to": "redispatch with the keys of the call that lie "
        "below the kernel's own",
    }

    operator: str
    key: str
    keyset: str
    available: tuple[str, ...]
    table: str
    reason: str

    def render(self) -> str:
        """The reason, the key set, the keys that do have kernels, and the table."""
        why = self.REASONS[self.reason].format(key=self.key)
        text = page(
            f"`{self.operator}` cannot run: {why}.",
            ("keys", self.keyset),
            ("kernels", ", ".join(self.available) or "none"),
            ("to do", self.ADVICE[self.reason].format(key=self.key)),
        )
        return f"{text}\n\n{self.table.rstrip()}" if self.table else text


@dataclass(eq=False, kw_only=True)
class AmbiguousKernel(EveryorderError, RuntimeError):
    """Two kernels claim AutogradOther, and neither is the right one for all of it."""

    operator: str
    state: str

    def render(self) -> str:
        """Both claims, the ways out, and the dumped state."""
        text = page(
            f"`{self.operator}` is ambiguous at AutogradOther: it has a "
            "CompositeImplicitAutograd kernel, and also a kernel for a backend whose "
            "autograd key is AutogradOther. The composite would hide the backend's.",
            ("to do", "register a kernel for AutogradOther, or call without autograd"),
        )
        return f"{text}\n\n{self.state.rstrip()}"


@dataclass(eq=False, kw_only=True)
class NamedNotSupported(EveryorderError, RuntimeError):
    """The operator has no rule for tensors whose dimensions have names."""

    operator: str

    def render(self) -> str:
        """The operator and the way around."""
        head = f"`{self.operator}` has no rule for named dimensions."
        return page(head, ("to do", "drop the names, call, and name the result"))


@dataclass(eq=False, kw_only=True)
class OperatorGone(EveryorderError, RuntimeError):
    """The operator that this object stands for is no longer registered."""

    operator: str

    def render(self) -> str:
        """The operator, and how to hold it."""
        return page(
            f"`{self.operator}` has been deregistered.",
            ("to do", "keep its Library open, or look the operator up again"),
        )


@dataclass(eq=False, kw_only=True)
class OperatorChanged(EveryorderError, RuntimeError):
    """An operator was defined anew, with another schema than its caller knows."""

    operator: str
    known: str
    found: str

    def render(self) -> str:
        """Both schemas, and who has to know the new one."""
        return page(
            f"`{self.operator}` is defined with another schema now.",
            ("known", self.known),
            ("found", self.found),
            ("to do", "compile again what calls it, or define it as it was"),
        )


@dataclass(eq=False, kw_only=True)
class OverloadGone(OperatorGone, AttributeError):
    """An overload was asked for of an operator that has none any more."""


@dataclass(eq=False, kw_only=True)
class PrivateDispatcher(EveryorderError, TypeError):
    """Another process cannot find a dispatcher that is not the default one."""

    def render(self) -> str:
        """What can be pickled instead."""
        return page(
            "Only the default dispatcher and its operators can be pickled or copied: "
            "nothing says where another process has this one.",
            ("to do", "send the operator's name, and look it up there"),
        )


@dataclass(eq=False, kw_only=True)
class CallWithoutSchema(EveryorderError, RuntimeError):
    """The operator has kernels but no definition, so that no call can be bound."""

    operator: str

    def render(self) -> str:
        """The operator and what is missing."""
        return page(
            f"`{self.operator}` has no schema: kernels are registered, but no "
            "definition.",
            ("to do", "define it, then call"),
        )


@dataclass(eq=False, kw_only=True)
class NoSuchOverload(EveryorderError, AttributeError):
    """The operator exists, the overload does not: see the near names."""

    operator: str
    overload: str
    near: tuple[str, ...]

    def render(self) -> str:
        """The overload asked for, and those like it."""
        head = f"`{self.operator}` has no overload `{self.overload}`."
        return page(head, *_row("near", *self.near))


@dataclass(eq=False, kw_only=True)
class NoMatchingOverload(EveryorderError, TypeError):
    """The call fits none of the overloads; each attempt says why."""

    operator: str
    attempts: tuple[tuple[str, str], ...]

    def render(self) -> str:
        """One block an overload, in the order in which they were tried."""
        tried = _counted(len(self.attempts), "overload")
        lines = [f"The call fits none of {tried} of `{self.operator}`."]
        for overload, text in self.attempts:
            body = "\n".join(f"    {line}" for line in text.splitlines())
            lines.append(f"  {overload or 'default'}:\n{body}")
        return "\n".join(lines)
