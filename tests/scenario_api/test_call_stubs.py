"""What is explored is the same when every call goes by a call stub at once."""

import pytest

from everyorder.harness import Scenario, explore
from everyorder.harness.expectations.document import document_of
from everyorder.harness.expectations.file_format import render
from tests.dispatch.conftest import with_stubs
from tests.scenarios import (
    test_autograd,
    test_backends,
    test_composites,
    test_fallbacks,
    test_fallthroughs,
    test_uses,
)

MODULES = (
    *(test_autograd, test_backends, test_composites),
    *(test_fallbacks, test_fallthroughs, test_uses),
)
SCENARIOS = [
    pytest.param(value, id=f"{module.__name__.rpartition('.')[2]}-{name}")
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, Scenario)
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_call_stubs_answer_alike(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = render(document_of(explore(scenario, "walk:1")))
    with_stubs(monkeypatch)
    assert render(document_of(explore(scenario, "walk:1"))) == plain
