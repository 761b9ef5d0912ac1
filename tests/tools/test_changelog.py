"""The changelog: its fragments can be read, and a release moves them into it."""

import re
from datetime import date
from pathlib import Path

import pytest

from tests.tools import changelog

OLD = """\
# Changelog

## Unreleased

See `.changes/`.

## 0.1.0

### Added

- A.
"""
NEW = """\
# Changelog

## Unreleased

See `.changes/`.

## 0.2.0 - 2030-01-31

### Added

- A call.
- A key.

### Fixed

- A leak.

## 0.1.0

### Added

- A.
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / ".changes"
    folder.mkdir()
    (folder / "leak.fixed.md").write_text("- A leak.\n", encoding="utf-8")
    (folder / "key.added.md").write_text("- A key.\n", encoding="utf-8")
    (folder / "call.added.md").write_text("- A call.\n", encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(OLD, encoding="utf-8")
    monkeypatch.setattr(changelog, "FRAGMENTS", folder)
    monkeypatch.setattr(changelog, "CHANGELOG", tmp_path / "CHANGELOG.md")
    monkeypatch.setattr(changelog, "current_version", lambda: "0.2.0")
    return tmp_path


def test_the_fragments_of_this_checkout_are_valid() -> None:
    changelog.body(changelog.fragments(changelog.FRAGMENTS))


def test_the_current_version_has_the_first_section() -> None:
    text = changelog.CHANGELOG.read_text(encoding="utf-8")
    sections = re.findall(r"^## (\S+)", text, re.MULTILINE)
    assert sections[:2] == ["Unreleased", changelog.current_version()]


def test_a_release_writes_a_section_and_deletes_the_fragments(checkout: Path) -> None:
    assert changelog.main(["--release", "2030-01-31"]) == 0
    assert (checkout / "CHANGELOG.md").read_text(encoding="utf-8") == NEW
    assert [*(checkout / ".changes").iterdir()] == []


def test_a_preview_changes_nothing(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert changelog.main([]) == 0
    printed = "### Added\n\n- A call.\n- A key.\n\n### Fixed\n\n- A leak.\n"
    assert capsys.readouterr().out == printed
    assert (checkout / "CHANGELOG.md").read_text(encoding="utf-8") == OLD


def test_a_version_is_released_once() -> None:
    with pytest.raises(ValueError, match=r"^version 0\.1\.0 has a section already"):
        changelog.release(OLD, "0.1.0", date(2030, 1, 31), "")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("leak.md", "- A leak.\n", "invalid fragment name 'leak.md'"),
        ("leak.mended.md", "- A leak.\n", "invalid fragment name 'leak.mended.md'"),
        ("leak.fixed.md", "A leak.\n", "invalid fragment 'leak.fixed.md'"),
    ],
)
def test_an_invalid_fragment_is_an_error(
    checkout: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    message: str,
) -> None:
    (checkout / ".changes" / name).write_text(text, encoding="utf-8")
    assert changelog.main(["--release", "2030-01-31"]) == 2
    assert capsys.readouterr().err.startswith(message)
    assert (checkout / "CHANGELOG.md").read_text(encoding="utf-8") == OLD
