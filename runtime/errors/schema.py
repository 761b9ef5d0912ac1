"""Errors about schemas: text that is no schema, and schemas that contradict themselves.

True only here: what each complaint about a schema carries, and that one line of a text
is shown.  Whoever wrote the schema acts on all of them, so each is also a `ValueError`.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError, nearest
from runtime.errors.source import Since, Source, printable, underline, with_calls

# The widest source excerpt under which a marker is still easy to find at 80 columns.
EXCERPT = 72


class SchemaError(EveryorderError, ValueError):
    """Base of the errors about schemas."""


@dataclass(eq=False, kw_only=True)
class SchemaSyntaxError(SchemaError):
    """The text is not a schema or a name.

    `span` is the half-open range of `source` that cannot stand there, `message` says
    what is wrong, `hint` what belongs there (it may be empty).
    """

    message: str
    source: str
    span: tuple[int, int]
    hint: str = ""

    def render(self) -> str:
        """The complaint, the marked line, and what belongs there."""
        line, marker = marked_line(self.source, self.span)
        text = f"{self.message}\n    {line}\n    {marker}"
        return f"{text}\n{self.hint}" if self.hint else text


@dataclass(eq=False, kw_only=True)
class UnknownKind(SchemaSyntaxError):
    """The text is that of a graph, and names a `kind` of nodes that is not there."""

    kind: str


@dataclass(eq=False, kw_only=True)
class UnknownAliasKind(SchemaError):
    """The word names no alias-analysis kind that a registration may choose."""

    found: str
    known: tuple[str, ...]

    def render(self) -> str:
        """The word, a near one, and the words there are."""
        near = nearest(self.found, self.known)
        guess = f" Did you mean {near[0]}?" if near else ""
        return (
            f"{self.found!r} is no alias-analysis kind.{guess}\n"
            f'Use one of {", ".join(self.known)}, or "" for FROM_SCHEMA.'
        )


def marked_line(source: str, span: tuple[int, int]) -> tuple[str, str]:
    """The line of `source` on which `span` begins, and a marker under it.

    A long line is cut around the span.
    """
    start, end = span
    first = source.rfind("\n", 0, start) + 1
    last = source.find("\n", start)
    line = source[first : last if last >= 0 else len(source)]
    start, end = start - first, min(end - first, len(line))
    if len(line) > EXCERPT:
        cut = max(0, min(start - EXCERPT // 2, len(line) - EXCERPT))
        line = line[cut : cut + EXCERPT]
        start, end = start - cut, min(end - cut, EXCERPT)
    return printable(line), f"{underline(line, start, end, 1)[:-1]}^"


@dataclass(eq=False, kw_only=True)
class UnknownTag(SchemaError):
    """There is no such tag."""

    found: str
    near: tuple[str, ...]

    def render(self) -> str:
        """The word and the tags close to it."""
        guess = f"Did you mean {' or '.join(self.near)}?" if self.near else ""
        return f"There is no tag {self.found!r}. {guess}".rstrip()


@dataclass(eq=False, kw_only=True)
class TagMismatch(SchemaError):
    """The schema is not what its tag promises."""

    tag: str
    schema: str
    fault: str

    def render(self) -> str:
        """The schema and the broken promise."""
        return (
            f"This schema does not fit the tag {self.tag}: {self.fault}.\n"
            f"    {self.schema}\n"
            f"{_PROMISES[self.tag]}"
        )


# Tag -> what it promises.
_PROMISES = {
    "out": (
        "An out operator writes to keyword-only Tensors and returns exactly those,\n"
        "in order, with the same annotation: f(*, Tensor(a!) out) -> Tensor(a!)"
    ),
    "inplace": (
        "An in-place operator writes to its first argument only and returns it,\n"
        "with the same annotation: f(Tensor(a!) self) -> Tensor(a!)"
    ),
}


@dataclass(eq=False, kw_only=True)
class TooManyArguments(SchemaError):
    """The operator has more arguments than a call can scan."""

    operator: str
    count: int
    limit: int

    def render(self) -> str:
        """Both numbers, and the way out."""
        return (
            f"{self.operator} would have {self.count} arguments; an operator has at "
            f"most {self.limit}.\nPass several values in one list."
        )


@dataclass(eq=False, kw_only=True)
class ArgumentOrder(SchemaError):
    """No call could pass these arguments."""

    schema: str
    argument: str
    fault: str

    def render(self) -> str:
        """The schema and the argument that cannot stand there."""
        return f"The argument `{self.argument}` {self.fault}.\n    {self.schema}"


@dataclass(eq=False, kw_only=True)
class ImpureFunction(SchemaError):
    """A PURE_FUNCTION shares or writes memory, by its own annotations."""

    schema: str
    annotated: str

    def render(self) -> str:
        """The annotated value, and the two ways out."""
        return (
            f"A PURE_FUNCTION shares no memory, but `{self.annotated}` is annotated.\n"
            f"    {self.schema}\n"
            "Drop the annotation, or define the operator as FROM_SCHEMA."
        )


@dataclass(eq=False, kw_only=True)
class InferenceError(SchemaError):
    """No schema follows from the annotations of a function.

    `place` is a parameter's name, or `return`; `found` is what stands there.
    """

    function: str
    place: str
    found: str
    reason: str
    remedy: str

    def render(self) -> str:
        """The function, the place, what stands there, and what to write."""
        where = "its result" if self.place == "return" else f"`{self.place}`"
        found = f" ({self.found})" if self.found else ""
        return (
            f"No schema follows from {self.function}: {where}{found} {self.reason}.\n"
            f"{self.remedy}"
        )


@dataclass(eq=False, kw_only=True)
class MalformedClassName(SchemaError):
    """A custom class is named in a way that no schema can write."""

    found: str

    def render(self) -> str:
        """The name and the form it should have."""
        return (
            f"{self.found!r} cannot name a custom class.\n"
            "A name is two identifiers joined by a dot: namespace.Class"
        )


@dataclass(eq=False, kw_only=True)
class AnnotationError(SchemaError):
    """An annotation of a program means no type.

    `span` is its place in `source`, `near` are the names close to one that is unknown,
    `hint` says what belongs there (it may be empty), `since` are the calls because of
    which the program is compiled, innermost first.
    """

    message: str
    source: Source
    span: tuple[int, int]
    near: tuple[str, ...] = ()
    hint: str = ""
    since: Since = ()

    def __str__(self) -> str:
        return with_calls(self.render(), self.since)

    @property
    def found(self) -> str:
        """What stands there."""
        return self.source.text[slice(*self.span)]

    def render(self) -> str:
        """The complaint, the source, and what belongs there."""
        guess = f"Did you mean {' or '.join(self.near)}?" if self.near else ""
        advice = " ".join(filter(None, (guess, self.hint)))
        text = f"{self.message}:\n{self.source.excerpt(self.span)}"
        return f"{text}\n{advice}" if advice else text


@dataclass(eq=False, kw_only=True)
class MalformedTypeName(SchemaError):
    """A class of a program is declared under a name that no text can write."""

    found: str

    def render(self) -> str:
        """The name and the form it should have."""
        return (
            f"{self.found!r} cannot name a declared type.\n"
            "A name is __torch__ and identifiers, joined by dots; "
            "__torch__.torch.classes\nis where custom classes live."
        )


@dataclass(eq=False, kw_only=True)
class DeclarationConflict(SchemaError):
    """Something was to be added to a declaration that has it already, or is sealed."""

    qualname: str
    name: str
    fault: str

    def render(self) -> str:
        """The class, the name, and what stands against it."""
        return f"`{self.name}` cannot be added to {self.qualname}: {self.fault}."


@dataclass(eq=False, kw_only=True)
class UnknownDeclaration(SchemaError, LookupError):
    """A pickled type has a name that is declared nowhere in this process."""

    qualname: str
    near: tuple[str, ...]

    def render(self) -> str:
        """The name, those close to it, and what to do."""
        guess = f" There is {' and '.join(self.near)}." if self.near else ""
        return (
            f"No type {self.qualname} is declared in this process.{guess}\n"
            "Compile the program that declares it before its types are unpickled."
        )


@dataclass(eq=False, kw_only=True)
class UnsharedNamespace(SchemaError, TypeError):
    """A type was to be pickled whose namespace no other process could find."""

    qualnames: tuple[str, ...]

    def render(self) -> str:
        """The first names in it, and what to do."""
        names = ", ".join(self.qualnames[:3])
        more = ", ..." if len(self.qualnames) > 3 else ""
        return (
            f"Types of a namespace of its own cannot be pickled ({names}{more}).\n"
            "Only the namespace that a process shares is found again; send the name of "
            "the type,\nand look it up where it arrives."
        )


@dataclass(eq=False, kw_only=True)
class AnnotationTaken(SchemaError):
    """A Python class would mean two schema types."""

    name: str
    known: str
    wanted: str

    def render(self) -> str:
        """The class and both types."""
        return (
            f"The annotation {self.name} means {self.known} in schemas already; "
            f"it cannot also mean {self.wanted}."
        )
