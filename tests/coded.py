"""Sentences of errors, for tests that look for one of them.

A class of errors has a sentence for each of its codes.  `code` is a check for
`pytest.raises`; `coded` stands for one sentence wherever an instance of a class is
looked for or made.

Tests of the harness ask for `code` too, and load nothing of the runtime.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from everyorder.runtime.errors.base import EveryorderError

Error = TypeVar("Error", bound="EveryorderError")

_SENTENCES: dict[tuple[type, str], type] = {}


def code(expected: str) -> Callable[[BaseException], bool]:
    """Whether an error has that code."""
    return lambda error: getattr(error, "code", None) == expected


def coded(kind: type[Error], code: str) -> type[Error]:
    """The errors of `kind` with that code, as if they had a class of their own."""

    class Sentence(type):
        def __instancecheck__(cls, error: object) -> bool:
            return isinstance(error, kind) and error.code == code

        def __call__(cls, /, **fields: Any) -> Error:
            return kind(code=code, **fields)

    sentence = _SENTENCES.setdefault(
        (kind, code), Sentence(code, (kind.of_code(code),), {"_named": kind})
    )
    return cast(type[Error], sentence)


def kind_of(error: BaseException) -> type[BaseException]:
    """The class of an error, or what stands for its sentence if there are several."""
    from everyorder.coded_error import sentences
    from everyorder.runtime.errors.base import EveryorderError

    if isinstance(error, EveryorderError) and len(sentences(error.words)) > 1:
        return coded(error._named or type(error), error.code)
    return type(error)
