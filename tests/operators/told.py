"""What an error says, wherever its lines break: the layout has tests of its own."""


def told(error: BaseException) -> str:
    """The words of the error."""
    return words(str(error))


def words(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())
