"""The strategies agree about every small scenario whose state is told by its system.

Nothing is loaded when this module is imported: the command line loads it with every
other one of its folder, and would load the whole catalogue twice.
"""

import runpy

import pytest

from tests.scenarios.agreeing import MOST_STEPS, agree, others, small

# Each of the steps of `full`, 144,000 of five, is a few milliseconds here.
LONGEST = ("scenarios/test_rpc/references",)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "path" in metafunc.fixturenames:
        metafunc.parametrize(
            "path",
            [
                pytest.param(path, marks=[pytest.mark.nightly] * (path in LONGEST))
                for path in small(others())
            ],
        )


@pytest.mark.slow
def test_strategies_agree(path: str) -> None:
    agree(small(others())[path])


def test_loading_this_module_loads_no_catalogue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each run of the command line loads it, and took 7.6 s longer for it."""
    loaded: list[object] = []
    monkeypatch.setattr(
        "tests.scenarios.agreeing.scenarios_of", lambda *at, **of: loaded.append(at)
    )
    names = runpy.run_path(__file__)
    assert loaded == []
    # It would have been seen.
    with pytest.raises(AttributeError):
        names["small"](("test_verdicts.py",))
    assert len(loaded) == 1


def test_full_plays_upstreams_five_steps() -> None:
    five = {s.name for s in small(others()).values() if len(s.steps) == MOST_STEPS}
    assert "founding_five" in five
