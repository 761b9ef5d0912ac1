"""The rules by which mutants are made, each on a few lines."""

import pytest

from tests.mutants.mutation import NoSuchMutation, candidates, mutated, shown

TEXT = '''"""A module."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature

LIMIT: int = 1


class Box:
    """A docstring."""

    full = False

    def put(self, what: Any = None, at: "int | None" = None) -> int:
        assert what is not None, "said before"
        if not self.full and what is not None:
            self.full = True
            self.note(what)
        return 1 + len([each for each in what if each < LIMIT])

    def note(self, what: Any) -> None:
        first = what[0]
        second = first + 2
        other = 3
        self.log(second, other)
        self.log(first)
'''

EXPECTED = [
    ("m:<module>:1 to 0:1", "LIMIT: int = 1", "LIMIT: int = 0"),
    ("m:Box:False to True:1", "full = False", "full = True"),
    (
        "m:Box.put:condition negated:1",
        "if not self.full and what is not None:",
        "if not (not self.full and what is not None):",
    ),
    (
        "m:Box.put:condition true:1",
        "if not self.full and what is not None:",
        "if True:",
    ),
    (
        "m:Box.put:condition false:1",
        "if not self.full and what is not None:",
        "if False:",
    ),
    (
        "m:Box.put:and to or:1",
        "if not self.full and what is not None:",
        "if not self.full or what is not None:",
    ),
    (
        "m:Box.put:not taken away:1",
        "if not self.full and what is not None:",
        "if self.full and what is not None:",
    ),
    (
        "m:Box.put:is not to is:1",
        "if not self.full and what is not None:",
        "if not self.full and what is None:",
    ),
    ("m:Box.put:store taken away:1", "self.full = True", "pass"),
    (
        "m:Box.put:swap:1",
        "self.full = True; self.note(what)",
        "self.note(what); self.full = True",
    ),
    ("m:Box.put:True to False:1", "self.full = True", "self.full = False"),
    ("m:Box.put:call taken away:1", "self.note(what)", "pass"),
    (
        "m:Box.put:+ to -:1",
        "return 1 + len([each for each in what if each < LIMIT])",
        "return 1 - len([each for each in what if each < LIMIT])",
    ),
    (
        "m:Box.put:1 to 0:1",
        "return 1 + len([each for each in what if each < LIMIT])",
        "return 0 + len([each for each in what if each < LIMIT])",
    ),
    (
        "m:Box.put:condition negated:2",
        "return 1 + len([each for each in what if each < LIMIT])",
        "return 1 + len([each for each in what if not each < LIMIT])",
    ),
    (
        "m:Box.put:condition true:2",
        "return 1 + len([each for each in what if each < LIMIT])",
        "return 1 + len([each for each in what if True])",
    ),
    (
        "m:Box.put:condition false:2",
        "return 1 + len([each for each in what if each < LIMIT])",
        "return 1 + len([each for each in what if False])",
    ),
    (
        "m:Box.put:< to <=:1",
        "return 1 + len([each for each in what if each < LIMIT])",
        "return 1 + len([each for each in what if each <= LIMIT])",
    ),
    (
        "m:Box.note:swap:1",
        "first = what[0]; second = first + 2",
        "second = first + 2; first = what[0]",
    ),
    ("m:Box.note:0 to 1:1", "first = what[0]", "first = what[1]"),
    ("m:Box.note:+ to -:1", "second = first + 2", "second = first - 2"),
    (
        "m:Box.note:swap:2",
        "other = 3; self.log(second, other)",
        "self.log(second, other); other = 3",
    ),
    ("m:Box.note:call taken away:1", "self.log(second, other)", "pass"),
    (
        "m:Box.note:swap:3",
        "self.log(second, other); self.log(first)",
        "self.log(first); self.log(second, other)",
    ),
    ("m:Box.note:call taken away:2", "self.log(first)", "pass"),
]


def test_every_mutation_of_a_module() -> None:
    names = [each.name for each in candidates("m", TEXT)]
    assert [(name, *shown("m", TEXT, name)) for name in names] == EXPECTED


def test_names_are_unique_and_have_no_line_in_them() -> None:
    names = [each.name for each in candidates("m", TEXT)]
    assert len(set(names)) == len(names)
    moved = [each.name for each in candidates("m", TEXT.replace("\n\n", "\n\n\n"))]
    assert moved == names


def test_each_is_another_module() -> None:
    found = set()
    for each in candidates("m", TEXT):
        found.add(mutated("m", TEXT, each.name, "m.py"))
    assert len(found) == len(EXPECTED)


def test_a_mutated_module_does_what_it_says() -> None:
    values: dict[str, int] = {}
    exec(mutated("m", "ONE = 1\n", "m:<module>:1 to 0:1", "m.py"), values)
    assert values["ONE"] == 0


@pytest.mark.parametrize("name", ["m:Box:swap:1", "m:Box.note:swap:9", ""])
def test_a_name_of_no_mutation(name: str) -> None:
    with pytest.raises(NoSuchMutation):
        mutated("m", TEXT, name, "m.py")
