"""The first lines of the output of a child."""


class Excerpt:
    """The first lines of the output of a child; further ones are counted.

    A step that prints does so at every operation, thousands of times.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self.omitted = 0

    def shown(self, text: str) -> str:
        """Return the part of the text that is printed."""
        lines = text.splitlines(keepends=True)
        shown, rest = lines[: self._left], lines[self._left :]
        self._left -= len(shown)
        self.omitted += len(rest)
        return "".join(shown)
