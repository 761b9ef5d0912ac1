"""The base class of every error that the runtime raises, and the rendering of errors.

An error is data.  A class of errors is one reaction that a caller can have; its `code`
selects the sentence of the class, and its fields hold what happened.  The harness
compares `code` and `fields()`, people read `str()`, and pickles carry the fields, so
that an error crosses processes without loss.

Rules:
- a class annotates its fields, and its `words` are the table of its sentences; the
  sentence with the name of the class is the default and needs no `code`;
- a field that only some sentences use is declared with a default;
- a field never holds a live kernel, tensor, lock or dispatcher: text and numbers
  only, so that a stored exception does not keep other objects alive;
- a class may add a builtin base (`ValueError`, `NotImplementedError`) where callers of
  such functions expect one.  Where only one sentence needs it, the sentence names it:
  an error of that sentence has a class with both bases (`of_code`), so that `except`
  and `isinstance` accept either; pickles name the class that declares the `words`.

    words = '''
    ShapesDiffer: The shapes {shapes: and } do not broadcast, in a head that may
        continue in deeper lines.
      would fit: a row; a row with an empty text is omitted
    UnknownKey (KeyError): no dispatch key is named {name!r}.
    SchemaNotFound | one line, used verbatim
    NamespaceTaken |
        several lines, each
          used verbatim, \\\\
        except that a backslash joins it with the next
    '''

A sentence is a template: `{name}` is a field or a property of the error, and

    {names:, |none}     a tuple: the separator, and the text for an empty tuple
    {names:, / or }     with another separator before the last item
    {names:each}        a row for each item, if the row holds nothing else
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

# `Py_TPFLAGS_HEAPTYPE`: set for classes that a `class` statement created.
_HEAP_TYPE = 1 << 9

# The first line of a sentence: its code, builtin classes, the layout, its head.
_BEGIN = re.compile(r"(\w+)(?: \(([\w, ]+)\))?(:| \|)(.*)")
_EACH = re.compile(r"\{(\w+):each\}")


class Sentence(NamedTuple):
    """The template of one code: `page` lays it out unless `as_it_is`."""

    head: str
    rows: tuple[Row, ...]
    as_it_is: bool


@cache
def sentences(words: str) -> Mapping[str, Sentence]:
    """Return the sentences of a table of words, by code."""
    return dict(_sentences(words))


def _blocks(words: str) -> Iterator[tuple[re.Match[str], list[str]]]:
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
    """Return the nearest builtin base of a class: it sets the layout and `__new__`."""
    base: Any = kind
    while base.__flags__ & _HEAP_TYPE:
        base = base.__base__
    return base


@dataclass_transform(eq_default=False, kw_only_default=True)
class _Declared(Exception):
    """Tells type checkers that annotations of a class are keyword arguments."""


class EveryorderError(_Declared):
    """Base of all errors of `runtime`; its code and its fields say what happened."""

    code: str = ""

    words: ClassVar[str] = ""
    # Rows of every sentence of the class: after the head, before its own rows.
    rows: ClassVar[tuple[Row, ...]] = ()

    # Code -> the class of its errors, where the sentence names builtin classes.
    _kinds: ClassVar[Mapping[str, type]] = {}
    # The builtin class whose `__new__` creates the errors.
    _builtin: ClassVar[type[Exception]] = Exception
    # For a class in `_kinds`: the class that a module declares and pickles name.
    _named: ClassVar[type["EveryorderError"] | None] = None
    # True for a class that represents an exception from outside the runtime.
    _foreign: ClassVar[bool] = False

    def __new__(cls, /, *args: Any, **fields: Any) -> Self:
        """Create an error of the class that its sentence selects."""
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
        """Return the class of the errors that have this code."""
        kinds: Mapping[str, type[Self]] = vars(cls).get("_kinds", {})
        return kinds.get(code, cls) if isinstance(code, str) else cls

    @classmethod
    def _with(cls, names: str) -> type[Self]:
        """Return a subclass that also derives from builtin classes."""
        bases = [getattr(builtins, name) for name in names.split(", ")]
        also = {
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "_named": cls,
        }
        metaclass: Any = type(cls)
        combined: type[Self] = metaclass(cls.__name__, (cls, *bases), also)
        return combined

    def _head(self, text: str) -> str:
        """Return the head of a page, which subclasses may extend."""
        return text

    def render(self) -> str:
        """Return the whole text for the reader: the sentence and its rows.

        Raises:
            NotImplementedError: the class has no sentence for `code`.
        """
        sentence = sentences(self.words).get(self.code)
        if sentence is None:
            raise NotImplementedError(f"no sentence for {self.code} in `words`")
        head = filled(sentence.head, self)
        if sentence.as_it_is:
            return head
        rows = [*self.rows, *sentence.rows]
        filled_rows = [row for each in rows for row in _rows(*each, self) if row[1]]
        return page(self._head(head), *filled_rows)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the sentence by name.

        Those passed to the constructor come first, then others that the sentence shows.
        """
        kind = self._named or type(self)
        declared = [
            name
            for each in reversed(kind.__mro__)
            if issubclass(each, EveryorderError) and each is not EveryorderError
            for name in each.__annotations__
            if name not in ("words", "rows")
        ]
        # Python itself sets `name` on an AttributeError.
        assigned = {*vars(self)} - (
            {"name"} if isinstance(self, AttributeError) else set()
        )
        relevant = assigned | _template_names(sentences(self.words).get(self.code))
        if len(sentences(vars(kind).get("words", ""))) < 2:
            relevant |= kind.__annotations__.keys()
        names = dict.fromkeys([*vars(self), *declared])
        return {
            name: getattr(self, name)
            for name in names
            if name in relevant and name in declared
        }

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
        notes = getattr(self, "__notes__", None)
        state = {"__notes__": notes} if notes else None
        kind = self._named or type(self)
        return _rebuild, (kind, self.code, self.fields()), state


def _rebuild(
    kind: type[EveryorderError], code: str, values: dict[str, Any]
) -> EveryorderError:
    return kind(code=code, **values)


def filled(template: str, error: EveryorderError) -> str:
    """Return the template with the fields and properties of the error filled in."""
    from string import Formatter

    pieces = []
    for text, path, form, conversion in Formatter().parse(template):
        pieces.append(text)
        if path is not None:
            name, bracket, index = path.partition("[")
            value = getattr(error, name)
            if bracket:
                value = value[int(index.removesuffix("]"))]
            pieces.append(_formatted(repr(value) if conversion else value, form or ""))
    return "".join(pieces)


def _rows(label: str, text: str, error: EveryorderError) -> Iterator[Row]:
    """Yield the row, or one row for each item of a field (`{names:each}`)."""
    each = _EACH.fullmatch(text)
    if each is None:
        yield filled(label, error), filled(text, error)
    else:
        for part in getattr(error, each[1]):
            yield label, part


def _template_names(sentence: Sentence | None) -> set[str]:
    """Return the names of fields and properties in the templates of a sentence."""
    from string import Formatter

    if sentence is None:
        return set()
    texts = [sentence.head, *("".join(row) for row in sentence.rows)]
    paths = [path for text in texts for _, path, _, _ in Formatter().parse(text)]
    return {path.partition("[")[0] for path in paths if path}


def _formatted(value: object, form: str) -> str:
    """Return the text of a value for the format of a placeholder."""
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
    """Return a sentence and its labelled rows, each wrapped at `COLUMNS`."""
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
    """Return at most three candidates close to `name`, closest first (by difflib)."""
    from difflib import get_close_matches

    return tuple(get_close_matches(name, candidates, n=3, cutoff=0.6))


def bytes_text(count: int) -> str:
    """Return a number of bytes in readable form: `3.5 MiB (3670016 bytes)`."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit} ({count} bytes)"


def code_of(error: BaseException) -> str:
    """Return the code of an error of the runtime, or the class name of another."""
    if isinstance(error, EveryorderError) and not error._foreign:
        return error.code
    return type(error).__name__
