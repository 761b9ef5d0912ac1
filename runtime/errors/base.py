"""The base of every error that the runtime raises, and how an error becomes words.

An error is data.  A class of errors is one reaction that a caller can have; its `code`
says which sentence of the class it is, and its fields hold what happened.  The harness
compares `code` and `fields()`, people read `str()`, and pickling goes by the fields, so
that an error crosses a process without loss.

Rules:
- a class annotates its fields, and its `words` are the table of its sentences; the
  sentence that has the name of the class is its own, and is not told its code;
- a field that not every sentence has is declared with a default;
- a field never holds a live kernel, tensor, lock or dispatcher: text and numbers
  only, so that an exception kept by somebody keeps nothing else alive;
- a class may add a builtin base (`ValueError`, `NotImplementedError`) where callers of
  such functions expect one.  Where that holds for one sentence only, the sentence names
  it: an error of that sentence is of a class made of both (`of_code`), so that `except`
  and `isinstance` take it by either; pickles name the class that has the words.

    words = '''
    ShapesDiffer: The shapes {shapes: and } do not broadcast, which is said in a head
        that may go on in deeper lines.
      would fit: a row; those whose text is empty are left out
    UnknownKey (KeyError): no dispatch key is named {name!r}.
    SchemaNotFound | one line, taken as it is
    NamespaceTaken |
        several lines, each
          taken as it is, \\\\
        but for the end of those that go on
    '''

A sentence is a template: `{name}` is a field or a property of the error, and

    {names:, |none}     a tuple, what stands between its parts, and what for no parts
    {names:, / or }     with something else before the last part
    {names:each}        a row for each part, if nothing else is in the row
    {number:count dog}  `1 dog`, `2 dogs`
    {number:bytes}      `3.5 MiB (3670016 bytes)`
"""

import builtins
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

Row = tuple[str, str]

# The width of a terminal by convention; rendered errors are tested at it.
COLUMNS = 80

# A class that was made by a `class` statement: `Py_TPFLAGS_HEAPTYPE`.
_MADE = 1 << 9

# Where a sentence begins: its code, builtin classes, how it is laid out, its head.
_BEGIN = re.compile(r"(\w+)(?: \(([\w, ]+)\))?(:| \|)(.*)")
_EACH = re.compile(r"\{(\w+):each\}")


class Sentence(NamedTuple):
    """The template of one code; laid out by `page`, or taken as it is."""

    head: str
    rows: tuple[Row, ...]
    as_it_is: bool


@cache
def sentences(words: str) -> Mapping[str, Sentence]:
    """The sentences of a table of words by their codes."""
    return dict(_sentences(words))


def _blocks(words: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    """The beginning of each sentence, and the lines below it without the margin.

    Raises:
        ValueError: a line at the margin begins no sentence.
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
    for begin, lines in _blocks(words):
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


def builtin_base(kind: type[Exception]) -> Any:
    """The class of Python's own that has the layout, and makes objects, of a class."""
    base: Any = kind
    while base.__flags__ & _MADE:
        base = base.__base__
    return base


@dataclass_transform(eq_default=False, kw_only_default=True)
class _Declared(Exception):
    """What a class annotates is what it is made of, for type checkers."""


class EveryorderError(_Declared):
    """Base of all errors of `runtime`; its code and its fields say what happened."""

    code: str = ""

    words: ClassVar[str] = ""
    # What stands behind the head of every sentence of the class, before its own rows.
    rows: ClassVar[tuple[Row, ...]] = ()

    # Code -> the class of its errors, where the sentence names builtin classes.
    _kinds: ClassVar[Mapping[str, type]] = {}
    # What makes its errors.
    _builtin: ClassVar[type[Exception]] = Exception
    # Of such a class: the one that modules know.
    _named: ClassVar[type["EveryorderError"] | None] = None
    # Whether it stands for an exception of a class that is none of ours.
    _foreign: ClassVar[bool] = False

    def __new__(cls, /, *args: Any, **fields: Any) -> Self:
        """An error, of the class of its sentence."""
        kind = cls.of_code(fields.get("code", cls.code))
        return kind._builtin.__new__(kind, *args)

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, value)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if "code" not in own and ("words" in own or "render" in own or not cls.code):
            cls.code = cls.__name__
        cls._builtin = builtin_base(cls)
        if "_named" not in own:
            cls._kinds = {
                begin[1]: cls._with(begin[2])
                for begin, _ in _blocks(cls.words)
                if begin[2]
            }

    @classmethod
    def of_code(cls, code: object) -> type[Self]:
        """The class of the errors of a class that have this code."""
        kinds: Mapping[str, type[Self]] = vars(cls).get("_kinds", {})
        return kinds.get(code, cls) if isinstance(code, str) else cls

    @classmethod
    def _with(cls, names: str) -> type[Self]:
        """The class, and builtin ones."""
        bases = [getattr(builtins, name) for name in names.split(", ")]
        also = {
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "_named": cls,
        }
        metaclass: Any = type(cls)
        made: type[Self] = metaclass(cls.__name__, (cls, *bases), also)
        return made

    def _head(self, text: str) -> str:
        """The head of a page, of the sentence's own."""
        return text

    def render(self) -> str:
        """The whole text shown to a person."""
        sentence = sentences(self.words).get(self.code)
        if sentence is None:
            raise NotImplementedError(f"{self.code} does not say what happened")
        head = filled(sentence.head, self)
        if sentence.as_it_is:
            return head
        rows = [*self.rows, *sentence.rows]
        told = [row for each in rows for row in _rows(*each, self) if row[1]]
        return page(self._head(head), *told)

    def fields(self) -> dict[str, Any]:
        """The fields of the sentence by name: as given, then what else it tells."""
        kind = self._named or type(self)
        declared = [
            name
            for each in reversed(kind.__mro__)
            if issubclass(each, EveryorderError) and each is not EveryorderError
            for name in each.__annotations__
            if name not in ("words", "rows")
        ]
        # Python itself names the attribute in an AttributeError.
        given = {*vars(self)} - (
            {"name"} if isinstance(self, AttributeError) else set()
        )
        told = given | _told(sentences(self.words).get(self.code))
        if len(sentences(vars(kind).get("words", ""))) < 2:
            told |= kind.__annotations__.keys()
        names = dict.fromkeys([*vars(self), *declared])
        return {
            name: getattr(self, name)
            for name in names
            if name in told and name in declared
        }

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
        notes = getattr(self, "__notes__", None)
        kept = {"__notes__": notes} if notes else None
        kind = self._named or type(self)
        return _rebuild, (kind, self.code, self.fields()), kept


def _rebuild(
    kind: type[EveryorderError], code: str, values: dict[str, Any]
) -> EveryorderError:
    return kind(code=code, **values)


def filled(template: str, error: EveryorderError) -> str:
    """The template with the fields and properties of the error."""
    from string import Formatter

    pieces = []
    for text, path, form, conversion in Formatter().parse(template):
        pieces.append(text)
        if path is not None:
            name, bracket, index = path.partition("[")
            value = getattr(error, name)
            if bracket:
                value = value[int(index.removesuffix("]"))]
            pieces.append(_shown(repr(value) if conversion else value, form or ""))
    return "".join(pieces)


def _rows(label: str, text: str, error: EveryorderError) -> Iterator[Row]:
    """A row, or one for each part of a field."""
    each = _EACH.fullmatch(text)
    if each is None:
        yield filled(label, error), filled(text, error)
    else:
        for part in getattr(error, each[1]):
            yield label, part


def _told(sentence: Sentence | None) -> set[str]:
    """The names in a sentence."""
    from string import Formatter

    if sentence is None:
        return set()
    texts = [sentence.head, *("".join(row) for row in sentence.rows)]
    paths = [path for text in texts for _, path, _, _ in Formatter().parse(text)]
    return {path.partition("[")[0] for path in paths if path}


def _shown(value: object, form: str) -> str:
    """A value as a template wants it."""
    if isinstance(value, tuple) and form:
        form, _, none = form.partition("|")
        between, slash, last = form.partition("/")
        *most, end = map(str, value) if value else [none]
        return (last if slash else between).join(
            filter(None, (between.join(most), end))
        )
    if form == "bytes" and isinstance(value, int):
        return bytes_text(value)
    if form.startswith("count "):
        return f"{value} {form[6:]}" if value == 1 else f"{value} {form[6:]}s"
    return format(value, form)


def page(head: str, *rows: Row) -> str:
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


def nearest(name: str, candidates: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """At most three candidates close to `name`, closest first (difflib's ratio)."""
    from difflib import get_close_matches

    return tuple(get_close_matches(name, candidates, n=3, cutoff=0.6))


def bytes_text(count: int) -> str:
    """A number of bytes for people: `3.5 MiB (3670016 bytes)`."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit} ({count} bytes)"


def code_of(error: BaseException) -> str:
    """The code of an error of the runtime; of another one the name of its class."""
    if isinstance(error, EveryorderError) and not error._foreign:
        return error.code
    return type(error).__name__
