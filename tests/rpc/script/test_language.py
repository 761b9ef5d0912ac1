"""What the reference of the language says of remote calls is so."""

import re
from pathlib import Path

import pytest

from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.rpc.api import remote_calls
from everyorder.runtime.script.frontend import reference, sections
from tests.rpc.script.fakes import World
from tests.rpc.script.wrong_calls import complaint

PAGE = Path(__file__).parents[3] / "docs" / "language.md"
ROW = re.compile(r"^\| (.+?) \| `(y = .+?)` \| (.+?) \|", re.MULTILINE)
HEAD = """\
def g(x: Tensor, scale: float = 1.0) -> Tensor:
    return x * scale
def f(to: str, x: Tensor, xs: List[int], d: Dict[str, float], rref: RRef[Tensor]):
"""


def told() -> dict[str, tuple[str, bool]]:
    """The examples by their names, and whether they are accepted."""
    text = PAGE.read_text(encoding="utf-8").partition("\n## Remote calls\n")[2]
    accepted, _, refused = text.partition("| refused |")
    return {
        name: (example, is_accepted)
        for part, is_accepted in ((accepted, True), (refused, False))
        for name, example, _ in ROW.findall(part)
    }


def test_the_page_is_printed_from_the_tables() -> None:
    assert callable(remote_calls.rpc_sync)
    assert PAGE.read_text(encoding="utf-8") == reference() + sections()


@pytest.mark.parametrize("name", told())
def test_examples_are_accepted_or_refused(name: str) -> None:
    example, is_accepted = told()[name]
    words = re.sub(r"\bf\b", "g", example)
    assert (complaint(f"{HEAD}    {words}\n") == "") is is_accepted


def test_the_examples_are_whole() -> None:
    assert [is_accepted for _, is_accepted in told().values()].count(False) == 5
    assert len(told()) == 16
    with World().plugged():
        assert "## Remote calls" in sections()
    assert issubclass(EveryorderError, Exception)
