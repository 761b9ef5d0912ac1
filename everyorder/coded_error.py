"""Errors as data: a code selects a sentence of a table, and fields fill its template.

The errors of the runtime and of the harness share this base.  A class has a table of
sentences, one for each code:

    words = '''
    ShapesDiffer: The shapes {shapes: and } do not broadcast, in a head that may
        continue in deeper lines.
      would fit: a row, which only the runtime renders
    UnknownKey (KeyError): builtin classes, which only the runtime adds
    SchemaNotFound | one line, used verbatim
    NamespaceTaken |
        several lines, each
          used verbatim, \\\\
        except that a backslash joins it with the next
    '''

A sentence is a template: `{name}` is a field or a property of the error, and

    {names:, |none}     a tuple: the separator, and the text for an empty tuple
    {names:, / or }     with another separator before the last item
    {names!r:, }        the `repr` of each item
    {number:count dog}  `1 dog`, `2 dogs`
    {number:bytes}      `3.5 MiB (3670016 bytes)`
    [[text||other]]     `text` if all fields that it names are truthy, else `other`,
                        which may be left out

No import in this file is slow: the processes that import modules in some order load it.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple, dataclass_transform

Row = tuple[str, str]

# The first line of a sentence: its code, builtin classes, the layout, its head.
_BEGIN = re.compile(r"(\w+)(?: \(([\w, ]+)\))?(:| \|)(.*)")
_OPTIONAL = re.compile(r"\[\[(.*?)(?:\|\|(.*?))?\]\]", re.DOTALL)


class Sentence(NamedTuple):
    """The template of one code: the runtime lays it out unless `as_it_is`."""

    head: str
    rows: tuple[Row, ...]
    as_it_is: bool


@cache
def sentences(words: str) -> Mapping[str, Sentence]:
    """Return the sentences of a table of words, by code."""
    return dict(_sentences(words))


def blocks(words: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Yield the first line of each sentence, and the lines below it without the margin.

    Raises:
        ValueError: a line at the margin does not begin a sentence.
    """
    lines = words.strip("\n").rstrip().splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    block: tuple[re.Match[str], list[str]] | None = None
    for line in lines:
        text = line[margin:]
        if not line[: margin + 1].strip() and block is not None:
            block[1].append(text)
            continue
        begin = _BEGIN.fullmatch(text)
        if begin is None or line[:margin].strip():
            raise ValueError(f"no sentence begins with {line.strip()!r}")
        if block is not None:
            yield block
        block = begin, []
    if block is not None:
        yield block


def _sentences(words: str) -> Iterator[tuple[str, Sentence]]:
    for begin, lines in blocks(words):
        code, _, layout, head = begin.groups()
        if layout == " |":
            drawn = [head[1:]] * bool(head) + [line[4:] for line in lines]
            text = re.sub(r"\\\n *", "", "\n".join(drawn))
            yield code, Sentence(text, (), as_it_is=True)
            continue
        rows = [("", head.strip())]
        for line in lines:
            if line.startswith("    "):
                label, text = rows.pop()
                rows.append((label, f"{text} {line.strip()}".strip()))
            else:
                label, _, text = line.strip().partition(":")
                rows.append((label, text.strip()))
        yield code, Sentence(rows[0][1], tuple(rows[1:]), as_it_is=False)


@dataclass_transform(eq_default=False, kw_only_default=True)
class _Declared(Exception):
    """Tells type checkers that annotations of a class are keyword arguments."""


class CodedError(_Declared):
    """Base of the errors of both areas; its code and its fields say what happened."""

    code: str = ""

    words: ClassVar[str] = ""
    # Fields that the constructor requires; the runtime lists none, to raise faster.
    _required: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, value)
        if self._required:
            missing = [name for name in self._required if name not in fields]
            if missing:
                raise TypeError(f"{type(self).__name__} has no {', '.join(missing)}")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if "code" not in own and ("words" in own or "render" in own or not cls.code):
            cls.code = cls.__name__

    def _sentence(self) -> Sentence:
        """Return the sentence of the code.

        Raises:
            NotImplementedError: the class has no sentence for `code`.
        """
        sentence = sentences(self.words).get(self.code)
        if sentence is None:
            raise NotImplementedError(f"no sentence for {self.code} in `words`")
        return sentence

    def render(self) -> str:
        """Return the whole text for the reader."""
        return filled(self._sentence().head, self)

    def __str__(self) -> str:
        return self.render()


def filled(template: str, error: CodedError) -> str:
    """Return the template with the fields and properties of the error filled in."""
    from string import Formatter

    if "[[" in template:
        template = _OPTIONAL.sub(lambda part: _chosen(part, error), template)
    pieces = []
    for text, path, form, conversion in Formatter().parse(template):
        pieces.append(text)
        if path is not None:
            name, bracket, index = path.partition("[")
            value = getattr(error, name)
            if bracket:
                value = value[int(index.removesuffix("]"))]
            pieces.append(_formatted(value, form, conversion))
    return "".join(pieces)


def _chosen(part: re.Match[str], error: CodedError) -> str:
    """Return the first text of an optional part, or the other if a field is empty."""
    from string import Formatter

    paths = [path for _, path, _, _ in Formatter().parse(part[1]) if path]
    return part[1] if all(getattr(error, each) for each in paths) else part[2] or ""


def template_names(sentence: Sentence | None) -> set[str]:
    """Return the names of fields and properties in the templates of a sentence.

    Those in optional parts are left out.
    """
    from string import Formatter

    if sentence is None:
        return set()
    texts = [sentence.head, *("".join(row) for row in sentence.rows)]
    paths = [
        path
        for text in texts
        for _, path, _, _ in Formatter().parse(_OPTIONAL.sub("", text))
    ]
    return {path.partition("[")[0] for path in paths if path}


def _formatted(value: object, form: str | None, conversion: str | None) -> str:
    """Return the text of a value for the format of a placeholder."""
    if form and isinstance(value, (tuple, list)):
        form, _, none = form.partition("|")
        between, slash, last = form.partition("/")
        *most, end = map(repr if conversion else str, value) if value else [none]
        return (last if slash else between).join(
            filter(None, (between.join(most), end))
        )
    if conversion:
        value = repr(value)
    if not form:
        return format(value)
    if form == "bytes" and isinstance(value, int):
        return bytes_text(value)
    if form.startswith("count "):
        return f"{value} {form[6:]}" if value == 1 else f"{value} {form[6:]}s"
    return format(value, form)


def bytes_text(count: int) -> str:
    """Return a number of bytes in readable form: `3.5 MiB (3670016 bytes)`."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit} ({count} bytes)"
