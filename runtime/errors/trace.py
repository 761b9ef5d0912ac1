"""Errors of tracing: what cannot be recorded, and traces that are not the function.

Who must act: whoever traces; all are `TraceError`, one class for each thing that one
can do about it.

Rules: places are texts, `file:line:column`, or empty if nobody knows them.
"""

from dataclasses import dataclass

from runtime.errors.call import page
from runtime.errors.script import ScriptError
from runtime.errors.source import Source, Span


@dataclass(eq=False, kw_only=True)
class TraceError(ScriptError):
    """Base of the errors of tracing, and of graphs that are built from Python."""


class TraceWarning(UserWarning):
    """What a trace keeps may be otherwise the next time."""


@dataclass(eq=False, kw_only=True)
class UntraceableInput(TraceError, TypeError):
    """An example, or what it holds at `path`, is nothing that a trace is given."""

    function: str
    path: str
    reason: str

    def render(self) -> str:
        """Where it is, what is wrong with it, and what belongs there."""
        return page(
            f"`{self.function}` cannot be traced with {self.path}: {self.reason}.",
            ("it takes", "tensors, and tuples, lists and dictionaries of them"),
            ("to do", "give everything else to the function before it is traced"),
        )


@dataclass(eq=False, kw_only=True)
class UntraceableOutput(TraceError, TypeError):
    """What a traced function returns, at `path`, is no result of a trace."""

    function: str
    path: str
    reason: str
    advice: str

    def render(self) -> str:
        """Where it is, what is wrong with it, and what to do."""
        head = f"{self.path} of `{self.function}` cannot be traced: {self.reason}."
        return page(head, ("to do", self.advice))


@dataclass(eq=False, kw_only=True)
class Untraceable(TraceError, RuntimeError):
    """A call in a traced function has a value that no graph holds.

    `source` and `span` are the place of the call, if somebody knows it.
    """

    call: str
    reason: str
    source: Source | None
    span: Span | None

    def render(self) -> str:
        """The call, the reason, and the place."""
        head = page(f"`{self.call}` cannot be traced: {self.reason}.")
        if self.source is None or self.span is None:
            return head
        return f"{head}\n{self.source.excerpt(self.span)}"


@dataclass(eq=False, kw_only=True)
class TraceDiffers(TraceError, RuntimeError):
    """A trace, run with some inputs, is not the function that was traced.

    `inputs` says which, `difference` what differs in the results, `step` and `place`
    are the first of the trace that differ (both may be empty), `found` is how it
    differs.
    """

    function: str
    inputs: str
    difference: str
    step: str
    place: str
    found: str

    def render(self) -> str:
        """What differs, where it begins, and how."""
        head = f"The trace of `{self.function}` is not the function for {self.inputs}."
        rows = [("results", self.difference)] if self.difference else []
        rows += [("from", self.step)] if self.step else []
        rows += [("at", self.place)] if self.place else []
        return page(head, *rows, ("because", self.found))


@dataclass(eq=False, kw_only=True)
class BuildRefused(TraceError, TypeError):
    """No node of `kind` can be built of what was given, for a `reason`."""

    kind: str
    reason: str

    def render(self) -> str:
        """The kind and the reason."""
        return page(f"No node `{self.kind}` can be built: {self.reason}.")
