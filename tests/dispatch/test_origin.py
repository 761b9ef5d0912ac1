"""Where something was registered."""

from runtime.dispatch.arguments import origin_of_caller


def asking() -> str:
    return origin_of_caller()


def test_the_line_that_called() -> None:
    line = test_the_line_that_called.__code__.co_firstlineno + 2
    assert asking() == f"registered at {__file__}:{line}"
