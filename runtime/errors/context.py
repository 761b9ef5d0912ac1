"""Errors of contexts: several interpreters in one process.

Who must act: whoever closes or enters contexts, brings the tensors of two together, or
registers in one what the main one does not.

Rules: contexts are named, so that an error keeps none alive; `operator` is the operator
as handlers see it, or as it was registered.
"""

from dataclasses import dataclass

from runtime.errors.call import page
from runtime.errors.python_dispatch import PythonDispatchError


@dataclass(eq=False, kw_only=True)
class ContextError(PythonDispatchError, RuntimeError):
    """A context is used as it cannot be; `context` names it."""

    context: str


@dataclass(eq=False, kw_only=True)
class MixedContexts(ContextError):
    """One call has tensors, or a mode, of two contexts: `context` and `other`."""

    operator: str
    other: str

    def render(self) -> str:
        """The operator and both contexts."""
        return page(
            f"`{self.operator}` was called with what belongs to the context "
            f"`{self.context}` and to `{self.other}`: neither can handle both.",
            ("to do", "unwrap the tensors of one, and wrap them in the other"),
        )


@dataclass(eq=False, kw_only=True)
class WrappedElsewhere(ContextError):
    """A tensor is of the context `other`; in `context` it was to be wrapped anew."""

    call: str
    cls: str
    other: str

    def render(self) -> str:
        """The call, the class of the tensor, and both contexts."""
        return page(
            f"`{self.call}` was given a `{self.cls}` of the context `{self.other}` in "
            f"the context `{self.context}`: which context handles a tensor never "
            "changes.",
            ("to do", "wrap what the tensor wraps, or hold it as an attribute"),
        )


@dataclass(eq=False, kw_only=True)
class ContextClosed(ContextError):
    """A context that was closed is asked something new: a call, or as `asked` says."""

    asked: str

    def render(self) -> str:
        """What was asked, and the context."""
        return page(
            f"`{self.asked}` needs the context `{self.context}`, which is closed.",
            ("to do", "let go of its tensors and modes before it is closed"),
        )


@dataclass(eq=False, kw_only=True)
class MainStaysOpen(ContextError):
    """The main context was to be closed: what it registers is everybody's."""

    def render(self) -> str:
        """The context, and what can be closed."""
        return page(
            f"`{self.context}` is the main context, which is there from the start to "
            "the end.",
            ("to do", "close its libraries, or the contexts beside it"),
        )


@dataclass(eq=False, kw_only=True)
class ContextNotEntered(ContextError):
    """A context is left that is not the one which the thread entered last."""

    current: str

    def render(self) -> str:
        """Both contexts."""
        return page(
            f"The context `{self.context}` is left, and the thread is in "
            f"`{self.current}`.",
            ("to do", "enter contexts by `with`, and leave each in its own thread"),
        )


@dataclass(eq=False, kw_only=True)
class NotVerified(ContextError):
    """What a context registered, the main one did not, for `timeout` seconds.

    `key` is empty for a definition; `operator` is that of a fallback's namespace for
    one.  `beside` says that a kernel is there which knows nothing of contexts.
    """

    operator: str
    key: str
    timeout: float
    beside: bool

    def render(self) -> str:
        """Who waited for what, and how long."""
        what = "a definition of "
        if self.key:
            what = f"a kernel at {self.key} for "
        rows = [
            (
                "to do",
                "do the same in every context, the main one first: its libraries come "
                "from `MAIN.library(...)`, and each module has to be imported there, "
                "too; or let the context wait longer: `Context.timeout`",
            )
        ]
        if self.beside:
            rows.insert(
                0, ("found", "a kernel of a library that is no context's: all run it")
            )
        return page(
            f"The context `{self.context}` registered {what}`{self.operator}`, and "
            f"waited {self.timeout:g} s in vain for the main context to do the same.",
            *rows,
        )


@dataclass(eq=False, kw_only=True)
class SchemaDiffers(ContextError):
    """A context defined an operator in another way than the main one."""

    operator: str
    schema: str
    expected: str

    def render(self) -> str:
        """The operator and both schemas."""
        return page(
            f"The context `{self.context}` defined `{self.operator}` in another way "
            "than the main context.",
            ("here", self.schema),
            ("there", self.expected),
            ("to do", "define it alike, or under another name"),
        )


@dataclass(eq=False, kw_only=True)
class NoCopy(ContextError):
    """A context has no copy of a kernel that another one registered."""

    operator: str
    key: str

    def render(self) -> str:
        """The operator, the key, and the context that lacks it."""
        return page(
            f"`{self.operator}` has a kernel at {self.key} of which every context "
            f"runs its own copy, and `{self.context}` has none.",
            ("to do", f"register it in `{self.context}` by its own `library(...)`"),
        )
