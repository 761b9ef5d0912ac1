"""The base of every error that the runtime raises, and how an error becomes words.

An error is data.  A class of errors is one reaction that a caller can have; its `code`
says which sentence of the class it is, and its fields hold what happened.  The harness
compares `code` and `fields()`, people read `str()`, and pickling goes by the fields, so
that an error crosses a process without loss.

Rules:
- a class annotates its fields, and has a sentence for each of its codes in `words`; a
  class of one sentence need not be told its code, and a code is the name of its class
  where there is one;
- a field that not every sentence has is declared with a default;
- a field never holds a live kernel, tensor, lock or dispatcher: text and numbers
  only, so that an exception kept by somebody keeps nothing else alive;
- a class may add a builtin base (`ValueError`, `NotImplementedError`) where callers of
  such functions expect one.

A sentence is a template: `{name}` is a field or a property of the error, and

    {names:, |none}     a tuple, what stands between its parts, and what for no parts
    {names:, / or }     with something else before the last part
    {number:count dog}  `1 dog`, `2 dogs`
    {number:bytes}      `3.5 MiB (3670016 bytes)`

One text is taken as it is.  A tuple is laid out by `page`: a head, then rows of a label
and a text, of which those whose text is empty are left out.  A sentence may also be a
method, where no template can say it.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, dataclass_transform

Row = tuple[str, str]
Sentence = str | tuple[str | Row, ...] | Callable[[Any], str]
Words = Mapping[str, Sentence]

# The width of a terminal by convention; rendered errors are tested at it.
COLUMNS = 80


@dataclass_transform(eq_default=False, kw_only_default=True)
class _Declared(Exception):
    """What a class annotates is what it is made of, for type checkers."""


class EveryorderError(_Declared):
    """Base of all errors of `runtime`; its code and its fields say what happened."""

    code: str = ""

    words: ClassVar[Words] = {}
    # What stands behind the head of every sentence of the class, before its own rows.
    rows: ClassVar[tuple[Row, ...]] = ()

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, value)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if "code" in own:
            return
        words = own.get("words", ())
        if len(words) == 1:
            (cls.code,) = words
        elif words or "render" in own or not cls.code:
            cls.code = cls.__name__

    # Whether it stands for an exception of a class that is none of ours.
    _foreign: ClassVar[bool] = False

    def _head(self, text: str) -> str:
        """The head of a page, of the sentence's own."""
        return text

    def render(self) -> str:
        """The whole text shown to a person."""
        sentence: Sentence | None = self.words.get(self.code)
        if sentence is None:
            raise NotImplementedError(f"{self.code} does not say what happened")
        if callable(sentence):
            return sentence(self)
        if isinstance(sentence, str):
            return filled(sentence, self)
        head, rows = str(sentence[0]), [*self.rows, *sentence[1:]]
        told = [(filled(row[0], self), filled(row[1], self)) for row in rows]
        return page(self._head(filled(head, self)), *(row for row in told if row[1]))

    def fields(self) -> dict[str, Any]:
        """The fields of the sentence by name: as given, then what else it tells."""
        kind = type(self)
        declared = [
            name
            for each in reversed(kind.__mro__)
            if issubclass(each, EveryorderError) and each is not EveryorderError
            for name in each.__annotations__
            if name not in ("words", "rows")
        ]
        told = {*vars(self), *_named(self.words.get(self.code, ""))}
        told |= {name for _, text in self.rows for name in _named(text)}
        if len(vars(kind).get("words", ())) < 2:
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
        return _rebuild, (type(self), self.code, self.fields()), kept


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


def _named(sentence: Sentence) -> set[str]:
    """The names in a sentence."""
    from string import Formatter

    if callable(sentence):
        return set()
    parts = [sentence] if isinstance(sentence, str) else sentence
    texts = [part if isinstance(part, str) else "".join(part) for part in parts]
    paths = [path for text in texts for _, path, _, _ in Formatter().parse(text)]
    return {path.partition("[")[0] for path in paths if path}


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
