"""Folders that only this user opens, and all that others could do to them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from everyorder.runtime.errors import UnsafeKeys
from everyorder.runtime.rpc.transport.addresses import (
    FOLDER_FLAGS,
    locked_folder,
    private_folder,
)
from tests.coded import code
from tests.forking import in_child, needs_fork
from tests.rpc.transport.inbox import folder


@pytest.fixture
def home() -> Iterator[Path]:
    with folder() as where:
        yield Path(where)


def test_it_is_made_and_closed_to_others(home: Path) -> None:
    previous = os.umask(0)
    try:
        assert private_folder(home / "own", create=True) == str(home / "own")
    finally:
        os.umask(previous)
    assert (home / "own").stat().st_mode & 0o777 == 0o700
    # It is taken as it is.
    assert private_folder(home / "own", create=True) == str(home / "own")
    assert private_folder(f"{home}/own/") == str(home / "own")


def test_the_real_path_is_what_is_used(home: Path) -> None:
    (home / "real").mkdir(mode=0o700)
    (home / "real" / "own").mkdir(mode=0o700)
    (home / "link").symlink_to(home / "real")
    assert private_folder(home / "link" / "own") == str(home / "real" / "own")


def why(path: Path, *, create: bool = False) -> str:
    with pytest.raises(UnsafeKeys, check=code("FolderUnsafe")) as raised:
        private_folder(path, create=create)
    assert raised.value.path == str(path)
    return raised.value.why


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("mode", [0o710, 0o701, 0o720, 0o770, 0o755, 0o777, 0o1777])
def test_one_that_others_open(home: Path, mode: int, create: bool) -> None:
    (home / "open").mkdir()
    (home / "open").chmod(mode)
    assert why(home / "open", create=create) == f"its mode is {mode:04o}"


def test_a_link(home: Path) -> None:
    (home / "real").mkdir(mode=0o700)
    (home / "link").symlink_to(home / "real")
    assert why(home / "link") == "it is a link"
    assert why(home / "link", create=True) == "it is a link"


def test_what_is_missing_is_not_made_unless_asked(home: Path) -> None:
    with pytest.raises(UnsafeKeys, check=code("FolderUnsafe")):
        private_folder(home / "missing")
    assert [*home.iterdir()] == []


def test_a_folder_is_opened_as_nothing_else(home: Path) -> None:
    """What was put in its place since it was checked is refused."""
    (home / "link").symlink_to(home)
    (home / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(OSError, match="Not a directory"):
            os.open(home / name, FOLDER_FLAGS)
    os.close(os.open(home, FOLDER_FLAGS))


def test_no_folder(home: Path) -> None:
    (home / "file").touch(0o600)
    assert why(home / "file") == "it is not a folder"
    assert why(home / "missing") == "No such file or directory"
    assert why(home / "missing" / "own", create=True) == "No such file or directory"


def test_somebody_elses(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert why(home) == f"it belongs to the user {me}, not to this one"


def test_one_that_others_can_replace(home: Path) -> None:
    shared = home / "shared"
    (shared / "own").mkdir(parents=True)
    (shared / "own").chmod(0o700)
    shared.chmod(0o777)
    assert why(shared / "own") == f"other users can change `{shared}`"
    # With the sticky bit, only its owner renames it.
    shared.chmod(0o1777)
    assert private_folder(shared / "own") == str(shared / "own")


@needs_fork
def test_one_process_at_a_time(home: Path) -> None:
    import fcntl

    def refused() -> bool:
        opened = os.open(home, os.O_RDONLY)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False

    with locked_folder(str(home)):
        assert in_child(refused)
    assert not in_child(refused)
