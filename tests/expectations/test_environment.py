"""One variable says whether this is continuous integration."""

import pytest

from harness.expectations import WritesForbidden, forbidden


@pytest.mark.parametrize("value", ["", "0", "false", "False", " no ", "off"])
def test_allowed(value: str) -> None:
    assert forbidden({"CI": value}) is None
    assert forbidden({}) is None


@pytest.mark.parametrize("value", ["1", "true", "github", "woodpecker"])
def test_forbidden(value: str) -> None:
    error = forbidden({"CI": value})
    assert isinstance(error, WritesForbidden)
    assert str(error) == (
        f"expect files are never written while CI={value!r} is set. Accept the change "
        "on a developer's machine and commit the files, or set CI=0 if this is one."
    )


def test_the_process_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "yes")
    assert forbidden() is not None
    monkeypatch.delenv("CI")
    assert forbidden() is None
