"""Errors of schemas: text that is not a schema, and schemas that contradict themselves.

The author of the schema must act on all of them, so each is also a `ValueError`.
"""

from everyorder.runtime.errors.base import EveryorderError, nearest
from everyorder.runtime.errors.source import (
    Since,
    Source,
    printable,
    underline,
    with_calls,
)

# The widest source excerpt under which a marker is still easy to find at 80 columns.
EXCERPT = 72


# Tag -> its contract.
PROMISES = {
    "out": (
        "An out operator writes to keyword-only Tensors and returns exactly those,\n"
        "in order, with the same annotation: f(*, Tensor(a!) out) -> Tensor(a!)"
    ),
    "inplace": (
        "An in-place operator writes to its first argument only and returns it,\n"
        "with the same annotation: f(Tensor(a!) self) -> Tensor(a!)"
    ),
}


class SchemaError(EveryorderError, ValueError):
    """A schema, or a name in it, contradicts itself or an existing definition.

    Or a pickled type is not declared in this process, or only in a private namespace.
    """

    found: str = ""
    known: tuple[str, ...] | str = ()
    near: tuple[str, ...] = ()
    tag: str = ""
    schema: str = ""
    fault: str = ""
    operator: str = ""
    count: int = 0
    limit: int = 0
    argument: str = ""
    annotated: str = ""
    qualname: str = ""
    name: str = ""
    wanted: str = ""
    qualnames: tuple[str, ...] = ()

    words = """
    UnknownAliasKind |
        {found!r} is not an alias-analysis kind.[[ Did you mean {_nearest}?]]
        Use one of {known:, }, or "" for FROM_SCHEMA.
    UnknownTag | unknown tag {found!r}.[[ Did you mean {near: or }?]]
    TagMismatch |
        This schema does not fit the tag {tag}: {fault}.
            {schema}
        {_promise}
    TooManySchemaArguments |
        {operator} would have {count} arguments; an operator has at most {limit}.
        Pass several values in one list.
    ArgumentOrder |
        The argument `{argument}` {fault}.
            {schema}
    ImpureFunction |
        A PURE_FUNCTION shares no memory, but `{annotated}` is annotated.
            {schema}
        Drop the annotation, or define the operator as FROM_SCHEMA.
    MalformedClassName |
        {found!r} cannot name a custom class.
        A name is two identifiers joined by a dot: namespace.Class
    MalformedTypeName |
        {found!r} cannot name a declared type.
        A name is __torch__ and identifiers, joined by dots; __torch__.torch.classes
        is reserved for custom classes.
    DeclarationConflict (RuntimeError) |
        `{name}` cannot be added to {qualname}: {fault}.
    AnnotationTaken |
        The annotation {name} means {known} in schemas already; it cannot also mean \\
        {wanted}.
    UnknownDeclaration (LookupError, TypeError) |
        No type {qualname} is declared in this process.[[ There is {near: and }.]]
        Compile the program that declares it before its types are unpickled.
    UnsharedNamespace (LookupError, TypeError) |
        Types of a private namespace cannot be pickled ({_names}).
        Another process can look up only the shared namespace; send the name of the \\
        type,
        and look it up there.
    """

    @property
    def _nearest(self) -> str:
        return "".join(nearest(self.found, tuple(self.known))[:1])

    @property
    def _promise(self) -> str:
        return PROMISES[self.tag]

    @property
    def _names(self) -> str:
        return ", ".join((*self.qualnames[:3], *("...",)[: len(self.qualnames) > 3]))


class SchemaSyntaxError(SchemaError):
    """The text is not a schema or a name.

    `span` is the half-open range of `source` that is invalid, `message` says what is
    wrong, `hint` what was expected (it may be empty).
    """

    message: str
    source: str
    span: tuple[int, int]
    hint: str = ""

    def render(self) -> str:
        """Return the message, the marked line, and the hint."""
        line, marker = marked_line(self.source, self.span)
        text = f"{self.message}\n    {line}\n    {marker}"
        return f"{text}\n{self.hint}" if self.hint else text


class UnknownKind(SchemaSyntaxError):
    """The text of a graph names a `kind` of nodes that does not exist."""

    code = "UnknownKind"

    kind: str


class InferenceError(SchemaError):
    """A schema cannot be inferred from the annotations of a function.

    `place` is a parameter's name, or `return`; `found` is the annotation there.
    """

    function: str
    place: str
    reason: str
    remedy: str

    words = """
    InferenceError |
        Cannot infer a schema from {function}: {_where} {reason}.
        {remedy}
    """

    @property
    def _where(self) -> str:
        where = "its result" if self.place == "return" else f"`{self.place}`"
        return f"{where} ({self.found})" if self.found else where


class AnnotationError(SchemaError, RuntimeError):
    """An annotation of a program does not denote a type.

    `span` is its place in `source`, `near` are names close to an unknown one, `hint`
    says what was expected (it may be empty), `since` are the calls because of which the
    program is compiled, innermost first.
    """

    message: str
    source: Source
    span: tuple[int, int]
    hint: str = ""
    since: Since = ()

    def render(self) -> str:
        """Return the message, the source, and the advice."""
        guess = f"Did you mean {' or '.join(self.near)}?" if self.near else ""
        advice = " ".join(filter(None, (guess, self.hint)))
        text = f"{self.message}:\n{self.source.excerpt(self.span)}"
        return f"{text}\n{advice}" if advice else text

    def __str__(self) -> str:
        return with_calls(self.render(), self.since)

    @property  # type: ignore[misc]  # as below
    def found(self) -> str:  # type: ignore[override]  # derived from source and span
        """Return the text of the span."""
        return self.source.text[slice(*self.span)]


def marked_line(source: str, span: tuple[int, int]) -> tuple[str, str]:
    """Return the line of `source` on which `span` begins, and a marker under it.

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
