"""Expect files on disk: read whole, written whole, or not at all."""

import os
from pathlib import Path
from threading import Thread

import pytest
from filelock import FileLock

from everyorder.harness.base.errors import BadScenario, DamagedExpectFile, FileError
from everyorder.harness.expectations import (
    Store,
    forbidden,
    render,
)
from tests.coded import code
from tests.expectations.samples import document


@pytest.mark.parametrize("value", ["", "0", "false", "False", " no ", "off"])
def test_allowed(value: str) -> None:
    assert forbidden({"CI": value}) is None
    assert forbidden({}) is None


@pytest.mark.parametrize("value", ["1", "true", "github", "woodpecker"])
def test_forbidden(value: str) -> None:
    error = forbidden({"CI": value})
    assert isinstance(error, FileError)
    assert error.code == "WritesForbidden"
    assert str(error) == (
        f"expect files are never written while CI={value!r} is set. Accept the change "
        "on a developer's machine and commit the files, or set CI=0 if this is one."
    )


def test_the_process_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "yes")
    assert forbidden() is not None
    monkeypatch.delenv("CI")
    assert forbidden() is None


NAME = "scenarios/test_demo/pair"


@pytest.fixture(autouse=True)
def _allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def tree(root: Path) -> list[str]:
    return sorted(
        file.relative_to(root).as_posix()
        for file in root.rglob("*")
        if file.is_file() and ".everyorder" not in file.parts
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.read(NAME) is None
    assert store.scenarios() == ()
    file = f"expect/{NAME}.txt"
    assert store.name(NAME) == file
    assert store.apply({NAME: document()}) == (file,)
    assert store.read(NAME) == document()
    assert (tmp_path / file).read_text() == render(document())
    assert tree(tmp_path) == [file]
    assert store.scenarios() == (NAME,)


def test_an_equal_file_is_not_touched(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.apply({NAME: document()})
    os.utime(store.path(NAME), (1, 1))
    assert store.apply({NAME: document()}) == ()
    assert store.path(NAME).stat().st_mtime == 1
    assert store.apply({NAME: document(uses=("call()",))}) == (store.name(NAME),)
    assert store.read(NAME) == document(uses=("call()",))


def test_deleting_removes_empty_folders(tmp_path: Path) -> None:
    store = Store(tmp_path)
    other = "scenarios/test_other/x"
    store.apply({NAME: document(), other: document(scenario=other)})
    assert store.stale([other]) == (NAME,)
    assert store.apply({NAME: None}) == (f"expect/{NAME}.txt",)
    assert store.apply({NAME: None}) == ()
    assert tree(tmp_path) == [f"expect/{other}.txt"]
    assert not (tmp_path / "expect/scenarios/test_demo").exists()


def test_nothing_is_written_under_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(FileError, check=code("WritesForbidden")):
        Store(tmp_path).apply({NAME: document()})
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    store.apply({NAME: document()})

    def refuse(source: object, target: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        store.apply({NAME: document(uses=("call()",))})
    assert store.read(NAME) == document()
    assert tree(tmp_path) == [f"expect/{NAME}.txt"]


def test_what_was_written_before_a_failure_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path)
    other = "scenarios/test_other/x"
    store.path(other).mkdir(parents=True)
    with pytest.raises(FileError, check=code("CannotWriteExpectFile")) as caught:
        store.apply({NAME: document(), other: document(scenario=other)})
    assert str(caught.value) == (
        f"expect/{other}.txt cannot be written: Is a directory; written before: "
        f"expect/{NAME}.txt."
    )
    assert caught.value.done == (store.name(NAME),)
    assert tree(tmp_path) == [f"expect/{NAME}.txt"]


def test_a_lock_that_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everyorder.harness.expectations.store.LOCK_SECONDS", 0)
    store = Store(tmp_path)
    lock = tmp_path / ".everyorder" / "expect.lock"
    lock.parent.mkdir()
    with (
        FileLock(lock),
        pytest.raises(FileError, check=code("CannotWriteExpectFile")) as caught,
    ):
        store.apply({NAME: document()})
    assert str(caught.value) == (
        ".everyorder/expect.lock cannot be written: another process has held it for 0 "
        "seconds; no expect file was written."
    )


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.path(NAME).mkdir(parents=True)
    with pytest.raises(FileError, check=code("CannotReadExpectFile")) as caught:
        store.read(NAME)
    assert str(caught.value) == (
        f"expect/{NAME}.txt exists but cannot be read: Is a directory. Make it a "
        "readable file, or remove it."
    )


def test_readers_see_the_old_or_the_new_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    documents = [document(), document(steps=("one()", "two()", "x" * 9000))]
    store.apply({NAME: documents[0]})

    def write() -> None:
        for turn in range(40):
            Store(tmp_path).apply({NAME: documents[turn % 2]})

    writers = [Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert store.read(NAME) in documents
    for writer in writers:
        writer.join()
    assert tree(tmp_path) == [f"expect/{NAME}.txt"]


@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "/a", "a//b", "a/", "../a", "a/../b", ".a/b", "a:b", "a\\b", "a?b"],
)
def test_bad_paths(tmp_path: Path, path: str) -> None:
    store = Store(tmp_path)
    with pytest.raises(
        BadScenario, check=code("BadScenarioPath"), match="no expect file can belong to"
    ):
        store.path(path)
    with pytest.raises(BadScenario, check=code("BadScenarioPath")):
        store.apply({NAME: document(), path: document()})
    assert store.scenarios() == ()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            b"everyorder expect file, format 3\nscen\xffario",
            f"expect/{NAME}.txt:2: this is not UTF-8; the line reads 'scen\\\\xff",
        ),
        (b"", f"expect/{NAME}.txt:1: the file ends; expected"),
        (
            render(document(scenario="other")).encode(),
            f"expect/{NAME}.txt:2: the file belongs to the scenario '{NAME}' by its",
        ),
    ],
)
def test_damage(tmp_path: Path, data: bytes, text: str) -> None:
    store = Store(tmp_path)
    store.path(NAME).parent.mkdir(parents=True)
    store.path(NAME).write_bytes(data)
    with pytest.raises(DamagedExpectFile) as caught:
        store.read(NAME)
    assert str(caught.value).startswith(text)
