"""Names that a program binds in a module of an observing tool are state."""

import operator
from importlib import import_module

import _pytest.compat
import _pytest.config
import pytest

from everyorder.harness.state.noise import NOISE_MODULES
from everyorder.harness.state.untracked_writes import Boundary, Extent
from tests.state.breakers import Place, verdict_of

MODULE = "_pytest.compat"
HEAD = (
    f"import sys\nimport {MODULE}, _pytest.config\nmodule = sys.modules['{MODULE}']\n"
)
UNNAMED = "import sys\n"


def changes_of(owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """Return what a scan says of an attribute that is set meanwhile."""
    boundary = Boundary(Extent)
    before = boundary.snapshot()
    monkeypatch.setattr(owner, name, 1, raising=False)
    return boundary.changes(before)


@pytest.mark.parametrize("name", [*NOISE_MODULES, MODULE, "_pytest.config"])
def test_a_name_in_a_module_of_the_observing_tool_is_compared(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = changes_of(import_module(name), "planted", monkeypatch)
    assert changes == (f"{name}.planted",)


@pytest.mark.parametrize(
    "path", ["compat.ascii_escaped", "config.Config", "config.Config.getini"]
)
def test_an_attribute_of_its_functions_and_classes_is_compared(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = operator.attrgetter(path)(_pytest)
    changes = changes_of(owner, "planted", monkeypatch)
    assert changes == (f"_pytest.{path}.planted",)


def hidden(place: str, *, head: str = HEAD) -> Place:
    """Return a place that is an attribute, which is deleted after the exploration."""
    return Place(
        f"return {place}._breaker",
        f"{place}._breaker = number",
        head=head,
        right="len('x')",
        restore=f"del {place}._breaker",
    )


PLACES = {
    "a global": hidden("module"),
    "a global without its name": hidden(
        "sys.modules['_py' + 'test.compat']", head=UNNAMED
    ),
    "an attribute of a function": hidden("module.ascii_escaped"),
    "an attribute of a function that is held": hidden(
        "victim", head=f"{HEAD}\nvictim = module.ascii_escaped\ndel module, _pytest"
    ),
    "an attribute of a class without its name": hidden(
        "getattr(sys.modules['_py' + 'test.config'], 'Con' + 'fig')", head=UNNAMED
    ),
}
SHORT = ("a global without its name",)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=() if each in SHORT else pytest.mark.slow)
        for each in PLACES
    ],
)
def test_a_registry_that_hides_state_in_pytest_is_not_plainly_proven(name: str) -> None:
    """Attributes of modules that are taken as noise were left out of a proof."""
    verdict = verdict_of(PLACES[name], faulty=True)
    assert (verdict.word, verdict.plain) == ("holds", False)
    assert any("_pytest." in remark for remark in verdict.remarks)
    assert verdict_of(PLACES[name], faulty=False).plain
