"""A registry for the tests of strategies: `owners` shows the order of `add`."""

from hypothesis import strategies as st

from everyorder import Scenario, steps, use
from everyorder.harness.strategies import calls, questions, scenarios


class Book:
    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def add(self, name: str, number: int = 1) -> None:
        if name in self.numbers:
            raise KeyError(name)
        self.numbers[name] = number

    def remove(self, name: str) -> None:
        del self.numbers[name]

    def owners(self, number: int) -> list[str]:
        return [name for name, own in self.numbers.items() if own == number]


WHOLE = Scenario(
    *steps("add", ["ann", "bob", "carl"], Book.add, undo=Book.remove),
    uses=[
        use("count", lambda book: len(book.numbers)),
        use("owners", lambda book: book.owners(1)),
    ],
    create=Book,
    expect=False,
    ordered=[("add('ann')", "add('carl')")],
)

NUMBERS = st.integers(1, 2)
GENERATED = scenarios(
    [
        calls(
            "add",
            Book.add,
            st.sampled_from("abc"),
            NUMBERS,
            undo=lambda book, name, number: book.remove(name),
        )
    ],
    [questions("owners", Book.owners, NUMBERS)],
    create=Book,
)
