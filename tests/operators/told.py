"""What an error says, wherever its lines break: the layout has tests of its own."""

from collections.abc import Callable

import pytest

# A call, and the error and the words that it is refused with.
Refused = tuple[Callable[[], object], type[Exception], str]


def told(error: BaseException) -> str:
    """The words of the error."""
    return words(str(error))


def words(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())


def refused(call: Callable[[], object], kind: type[Exception], text: str) -> None:
    """Make sure that the call is refused with these words."""
    with pytest.raises(kind) as caught:
        call()
    assert told(caught.value) == words(text)
