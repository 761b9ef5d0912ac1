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

`everyorder.coded_error` explains the table.  Sentences are laid out as pages: rows are
aligned below the head, a row with an empty text is omitted, and a row `{names:each}` is
repeated for each item of the field.
"""

import builtins
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self

from everyorder.coded_error import (
    CodedError,
    Row,
    blocks,
    filled,
    sentences,
    template_names,
)

# The width of a terminal by convention; rendered errors are tested at it.
COLUMNS = 80

# `Py_TPFLAGS_HEAPTYPE`: set for classes that a `class` statement created.
_HEAP_TYPE = 1 << 9

_EACH = re.compile(r"\{(\w+):each\}")


def builtin_base(kind: type[Exception]) -> Any:
    """Return the nearest builtin base of a class: it sets the layout and `__new__`."""
    base: Any = kind
    while base.__flags__ & _HEAP_TYPE:
        base = base.__base__
    return base


class EveryorderError(CodedError):
    """Base of all errors of `runtime`; its code and its fields say what happened."""

    code = ""

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

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._builtin = builtin_base(cls)
        words = "" if "_named" in vars(cls) else cls.words
        cls._kinds = {
            begin[1]: cls._with(begin[2]) for begin, _ in blocks(words) if begin[2]
        }

    @classmethod
    def of_code(cls, code: object) -> type[Self]:
        """Return the class of the errors that have this code."""
        kinds: Mapping[str, type[Self]] = cls._kinds
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
        sentence = self._sentence()
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
        relevant = assigned | template_names(sentences(self.words).get(self.code))
        if len(sentences(vars(kind).get("words", ""))) < 2:
            relevant |= kind.__annotations__.keys()
        names = dict.fromkeys([*vars(self), *declared])
        return {
            name: getattr(self, name)
            for name in names
            if name in relevant and name in declared
        }

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
        notes = getattr(self, "__notes__", None)
        state = {"__notes__": notes} if notes else None
        kind = self._named or type(self)
        return _rebuild, (kind, self.code, self.fields()), state


def _rebuild(
    kind: type[EveryorderError], code: str, values: dict[str, Any]
) -> EveryorderError:
    return kind(code=code, **values)


def _rows(label: str, text: str, error: EveryorderError) -> Iterator[Row]:
    """Yield the row, or one row for each item of a field (`{names:each}`)."""
    each = _EACH.fullmatch(text)
    if each is None:
        yield filled(label, error), filled(text, error)
    else:
        for part in getattr(error, each[1]):
            yield label, part


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


def code_of(error: BaseException) -> str:
    """Return the code of an error of the runtime, or the class name of another."""
    # The class: a property `__class__` of a user's class may raise.
    if issubclass(type(error), EveryorderError) and not error._foreign:  # type: ignore[attr-defined]  # checked
        return error.code  # type: ignore[attr-defined,no-any-return]  # checked
    return type(error).__name__
