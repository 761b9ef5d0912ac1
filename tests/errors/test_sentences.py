"""Tables of words: how they are read and laid out, and the classes of their errors."""

import copy
import pickle
from abc import ABC
from typing import Any

import pytest

import everyorder.runtime.errors
from everyorder.coded_error import Sentence, sentences
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.future import FutureMisuse

KINDS: dict[str, Any] = {
    n: getattr(everyorder.runtime.errors, n) for n in everyorder.runtime.errors.__all__
}


class Told(EveryorderError):
    """What a table may have."""

    names: tuple[str, ...] = ()
    number: int = 1

    words = """
    Told: One sentence, with {number:count part}, that goes
        on in a deeper line.
      names: {names:, |none}
      each: {names:each}
      {names[0]}: a label may
        be told, too
    TooLow (KeyError, OverflowError) | {number} is too low.
    Drawn |
        Several lines:
            {number}, and what goes on \\
            here.
          end
    """


def test_a_table_is_read() -> None:
    assert sentences(Told.words) == {
        "Told": Sentence(
            "One sentence, with {number:count part}, that goes on in a deeper line.",
            (
                ("names", "{names:, |none}"),
                ("each", "{names:each}"),
                ("{names[0]}", "a label may be told, too"),
            ),
            as_it_is=False,
        ),
        "TooLow": Sentence("{number} is too low.", (), as_it_is=True),
        "Drawn": Sentence(
            "Several lines:\n    {number}, and what goes on here.\n  end",
            (),
            as_it_is=True,
        ),
    }
    assert sentences("") == {}


@pytest.mark.parametrize("margin", [0, 2, 4, 12])
def test_the_margin_of_a_table_is_that_of_its_first_line(margin: int) -> None:
    lines = (
        "Low (KeyError): {number} is",
        "    low.",
        "  row: a (b): c",
        "High: high.",
    )
    words = "".join(f"\n{' ' * margin}{line}" for line in lines)

    words += "\n" + " " * margin
    kind: Any = type("Deep", (EveryorderError,), {"words": words})
    assert sentences(words) == {
        "Low": Sentence("{number} is low.", (("row", "a (b): c"),), as_it_is=False),
        "High": Sentence("high.", (), as_it_is=False),
    }
    assert isinstance(kind(code="Low", number=1), KeyError)
    assert not isinstance(kind(code="High"), KeyError)


def test_a_line_before_the_margin_begins_nothing() -> None:
    with pytest.raises(ValueError, match="no sentence begins with 'Two: b'"):
        type("Wrong", (EveryorderError,), {"words": "\n    One: a\n  Two: b\n"})


def test_a_sentence_is_laid_out() -> None:
    assert str(Told(names=("a", "b"), number=2)) == (
        "One sentence, with 2 parts, that goes on in a deeper line.\n"
        "  names: a, b\n"
        "  each:  a\n"
        "  each:  b\n"
        "  a:     a label may be told, too"
    )
    drawn = "Several lines:\n    3, and what goes on here.\n  end"
    assert str(Told(code="Drawn", number=3)) == drawn


class Parts(EveryorderError):
    """What a sentence may leave out."""

    near: tuple[str, ...] = ()
    name: str = ""
    size: int = 0

    words = """
    Parts: {size}[[, near {near!r:, / or }||, alone]]
      to do: [[rename `{name}`]]
    Row | {size}[[ of {name}, near
        {near:
        }]]
    """


def test_an_optional_part_needs_all_of_its_fields() -> None:
    assert str(Parts()) == "0, alone"
    assert str(Parts(near=("a", "b", "c"))) == "0, near 'a', 'b' or 'c'"
    assert str(Parts(name="x")) == "0, alone\n  to do: rename `x`"
    assert str(Parts(code="Row", name="x")) == "0"
    near: Any = ["a", "b"]  # a list reads as a tuple does
    assert str(Parts(code="Row", name="x", near=near)) == "0 of x, near\na\nb"


def test_a_field_of_an_optional_part_is_one_of_the_error_if_it_was_passed() -> None:
    assert Parts(code="Row").fields() == {"size": 0}
    error = Parts(code="Row", name="x")
    assert error.fields() == {"name": "x", "size": 0}
    assert pickle.loads(pickle.dumps(error)).fields() == error.fields()


def test_a_table_without_a_code_is_none() -> None:
    with pytest.raises(ValueError, match="no sentence begins with 'no code'"):
        sentences("\n    no code\n    ")


def test_a_class_that_says_nothing() -> None:
    with pytest.raises(NotImplementedError, match="no sentence for Else"):
        str(Told(code="Else"))


def test_errors_are_of_the_builtin_classes_of_their_sentence() -> None:
    error, other = Told(code="TooLow"), Told(code="Drawn")
    assert isinstance(error, Told)
    assert isinstance(error, KeyError)
    assert isinstance(error, OverflowError)
    assert type(other) is Told
    assert (type(error).__qualname__, type(error).__module__) == ("Told", __name__)
    assert type(error) is Told.of_code("TooLow") is type(Told(code="TooLow"))
    assert error.fields() == {"number": 1}
    assert Told.of_code("Drawn") is Told.of_code(None) is Told.of_code([]) is Told


def required(kind: Any) -> set[str]:
    kinds = [each for each in kind.__mro__ if issubclass(each, EveryorderError)]
    return {name for each in kinds for name in each.__annotations__} - {*dir(kind)}


def test_every_sentence_crosses_a_process_as_what_it_is() -> None:
    count = 0
    for kind in KINDS.values():
        for code in sentences(vars(kind).get("words", "")):
            error = kind(code=code, **dict.fromkeys(required(kind), "x"))
            copy = pickle.loads(pickle.dumps(error))
            assert type(copy) is type(error) is kind.of_code(code)
            assert copy.code == code
            count += 1
    assert count > 250


class OfTheirs(Told, ABC):
    """A class of somebody's own, with a metaclass of its own."""


def test_the_first_sentence_may_name_builtin_classes_too() -> None:
    error = FutureMisuse(call="f", found="x", wanted="y")
    assert isinstance(error, TypeError)
    assert type(copy.copy(error)) is type(pickle.loads(pickle.dumps(error)))
    assert type(copy.copy(error)) is type(error)


def test_a_class_below_has_the_builtin_classes_of_its_sentences() -> None:
    low, plain = OfTheirs(code="TooLow"), OfTheirs()
    assert all(isinstance(low, each) for each in (OfTheirs, KeyError, OverflowError))
    assert isinstance(plain, OfTheirs)
    assert not isinstance(plain, KeyError)
    assert type(pickle.loads(pickle.dumps(low))) is type(low)


@pytest.mark.parametrize(
    ("code", "also"),
    [
        *((code, None) for code in ("NotQualified", "TagRefused", "OpCheckMisuse")),
        *((code, TypeError) for code in ("BadMutatesArgs", "NotAnOperator")),
        *((code, RuntimeError) for code in ("NotFunctional", "LibraryNeeded")),
    ],
)
def test_a_refused_definition_is_no_error_of_another_sentence(
    code: str, also: type | None
) -> None:
    error = everyorder.runtime.errors.DefinitionRefused(code=code)
    kinds = {k for k in (TypeError, RuntimeError) if isinstance(error, k)}
    assert isinstance(error, ValueError)
    assert kinds == ({also} - {None})
