"""What an error says, wherever its lines break: the layout has tests of its own."""

from collections.abc import Callable

import pytest

# A call, and the error and the words that it is refused with.
Refusal = tuple[Callable[[], object], type[Exception], str]


def message_of(error: BaseException) -> str:
    """The words of the error."""
    return one_line(str(error))


def one_line(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())


def assert_refused(
    call: Callable[[], object], kind: type[Exception], text: str
) -> None:
    """Make sure that the call is refused with these words."""
    with pytest.raises(kind) as caught:
        call()
    assert message_of(caught.value) == one_line(text)
