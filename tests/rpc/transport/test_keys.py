"""Folders of keys: what they hold, whom they let in, and what is refused."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from everyorder.runtime.errors import UnsafeKeys
from everyorder.runtime.rpc.transport.addresses import Keys, zap_answer
from tests.coded import code, coded
from tests.forking import fork, needs_fork
from tests.rpc.transport.inbox import folder

FolderUnsafe = coded(UnsafeKeys, "FolderUnsafe")


@pytest.fixture
def home() -> Iterator[Path]:
    with folder() as where:
        yield Path(where) / "keys"


def modes(where: Path) -> dict[str, int]:
    return {each.name: each.stat().st_mode & 0o777 for each in where.iterdir()}


def test_a_pair_is_made_once(home: Path) -> None:
    previous = os.umask(0o002)
    try:
        keys = Keys.create(home)
    finally:
        os.umask(previous)
    assert modes(home) == {"secret.key": 0o600, "public.key": 0o644}
    assert home.stat().st_mode & 0o777 == 0o700
    assert Keys.create(home) == Keys.load(home) == keys
    assert keys.keeper == keys.public == (home / "public.key").read_text().strip()
    assert keys.secret == (home / "secret.key").read_text().strip()
    assert Keys.drawn() != Keys.drawn()
    (home / "public.key").unlink()
    Keys.create(home)
    assert (home / "public.key").read_text() == keys.public + "\n"


def test_a_pair_that_is_kept_nowhere() -> None:
    keys = Keys.drawn()
    assert (keys.keeper, keys.folder, keys.others) == (keys.public, "", frozenset())
    assert Keys.drawn(keeper=keys.public).keeper == keys.public


def test_no_file_is_left_open(home: Path) -> None:
    Keys.create(home)
    (home / "allowed").mkdir()
    before = os.listdir("/dev/fd")
    keys = Keys.create(home)
    keys.allows(Keys.drawn().public)
    (home / "allowed" / "a.key").write_text(Keys.drawn().public)
    keys.allows(Keys.drawn().public)
    assert os.listdir("/dev/fd") == before


@needs_fork
def test_who_comes_first_draws_it_for_all(home: Path) -> None:
    """Whoever loses takes what the winner wrote, and leaves nothing behind."""
    home.mkdir(mode=0o700)
    children = []
    for _ in range(6):
        child = fork()
        if not child:
            try:
                Keys.create(home)
            finally:
                os._exit(0)
        children.append(child)
    keys = Keys.create(home)
    for child in children:
        os.waitpid(child, 0)
    assert Keys.load(home) == keys
    assert {*modes(home)} == {"secret.key", "public.key"}


def test_no_secret_is_shown() -> None:
    keys = Keys.drawn()
    assert keys.secret not in repr(keys)
    assert keys.public in repr(keys)


def test_keys_of_this_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    keys = Keys.of_this_user()
    assert Keys.of_this_user() == keys
    assert keys.folder == str(home / f"everyorder-rpc-{os.geteuid()}")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(home))
    assert Keys.of_this_user() == keys


def test_a_folder_that_somebody_else_put_there(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where everybody may make folders, one made by another is not taken."""
    home.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    trap = home / f"everyorder-rpc-{os.geteuid()}"
    trap.mkdir()
    trap.chmod(0o777)
    with pytest.raises(FolderUnsafe, match="its mode is 0777"):
        Keys.of_this_user()
    trap.rmdir()
    trap.symlink_to(home)
    with pytest.raises(FolderUnsafe, match="it is a link"):
        Keys.of_this_user()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_secret_that_others_read(home: Path, mode: int) -> None:
    Keys.create(home)
    (home / "secret.key").chmod(mode)
    with pytest.raises(FolderUnsafe) as raised:
        Keys.load(home)
    assert raised.value.why == f"its mode is {mode:04o}"
    assert raised.value.path == str(home / "secret.key")


def test_a_secret_behind_a_link(home: Path) -> None:
    Keys.create(home)
    (home / "secret.key").rename(home / "elsewhere")
    (home / "secret.key").symlink_to(home / "elsewhere")
    with pytest.raises(FolderUnsafe) as raised:
        Keys.load(home)
    assert raised.value.path == str(home / "secret.key")
    assert raised.value.why.startswith("it is a link, or ")


def test_a_secret_that_is_no_file(home: Path) -> None:
    home.mkdir(mode=0o700)
    os.mkfifo(home / "secret.key", 0o600)
    with pytest.raises(FolderUnsafe, match="it is not a regular file"):
        Keys.load(home)


def test_they_are_a_name_of_programs(home: Path) -> None:
    from everyorder.runtime import rpc

    assert rpc.Keys.create(home) == Keys.load(home)


def test_a_folder_without_keys(home: Path) -> None:
    home.mkdir(mode=0o700)
    with pytest.raises(UnsafeKeys, check=code("NotAKey")) as raised:
        Keys.load(home)
    assert " ".join(str(raised.value).split()) == (
        f"`{home}/secret.key` does not hold a key: there is no such file; "
        "`rpc.Keys.create(folder)` makes it."
    )


NO_KEYS = ["", "key", "0" * 63, "0" * 65, "g" * 64, "A" * 64, "0" * 64 + "\n" + "1"]


@pytest.mark.parametrize("text", NO_KEYS)
def test_a_file_that_holds_no_key(home: Path, text: str) -> None:
    keys = Keys.create(home)
    for name in ("keeper.key", "secret.key"):
        (home / name).write_text(text)
        (home / name).chmod(0o600)
        with pytest.raises(UnsafeKeys, check=code("NotAKey")) as raised:
            Keys.load(home)
        assert raised.value.path == str(home / name)
        (home / name).write_text(keys.public)


def test_the_key_of_the_keeper(home: Path) -> None:
    keys, keeper = Keys.create(home), Keys.drawn()
    (home / "keeper.key").write_text(keeper.public + "\n")
    assert Keys.load(home) == replace(keys, keeper=keeper.public)


def test_who_may_come_in(home: Path) -> None:
    """The folder is asked each time, so what changes in it counts at once."""
    keys, friend, other = Keys.create(home), Keys.drawn(), Keys.drawn()
    assert keys.allows(keys.public)
    assert not keys.allows(friend.public)
    (home / "allowed").mkdir()
    assert not keys.allows(friend.public)
    (home / "allowed" / "friend.key").write_text(friend.public + "\n")
    assert keys.allows(friend.public)
    assert not keys.allows(other.public)
    (home / "allowed" / "friend.key").unlink()
    assert not keys.allows(friend.public)
    assert not keys.allows("")
    assert Keys.drawn(others=frozenset({friend.public})).allows(friend.public)
    assert not Keys.drawn().allows(friend.public)


def test_one_bad_file_keeps_nobody_out(home: Path) -> None:
    keys, friend = Keys.create(home), Keys.drawn()
    (home / "allowed").mkdir()
    (home / "allowed" / "a.key").write_text("nonsense")
    (home / "allowed" / "b.key").write_text(friend.public)
    (home / "allowed" / "README").write_text("nonsense")
    assert keys.allows(friend.public)
    with pytest.raises(UnsafeKeys, check=code("NotAKey"), match=r"allowed/a\.key"):
        keys.allows(Keys.drawn().public)


@pytest.mark.parametrize("what", ["allowed", "allowed/a.key"])
def test_a_list_that_others_write(home: Path, what: str) -> None:
    keys, stranger = Keys.create(home), Keys.drawn()
    (home / "allowed").mkdir(mode=0o700)
    (home / "allowed" / "a.key").write_text(stranger.public)
    assert keys.allows(stranger.public)
    (home / what).chmod((home / what).stat().st_mode | 0o022)
    with pytest.raises(FolderUnsafe):
        keys.allows(stranger.public)
    # Our own key is not read from there.
    assert keys.allows(keys.public)


def test_an_allowed_key_behind_a_link(home: Path) -> None:
    keys, stranger = Keys.create(home), Keys.drawn()
    (home / "allowed").mkdir(mode=0o700)
    (home / "elsewhere").write_text(stranger.public)
    (home / "allowed" / "a.key").symlink_to(home / "elsewhere")
    with pytest.raises(FolderUnsafe):
        keys.allows(stranger.public)


def request(key: bytes, mechanism: bytes = b"CURVE") -> list[bytes]:
    return [b"1.0", b"7", b"everyorder", b"10.0.0.1", b"id", mechanism, key]


def test_answers() -> None:
    keys, stranger = Keys.drawn(), Keys.drawn()
    assert zap_answer(request(bytes.fromhex(keys.public)), keys) == (
        [b"1.0", b"7", b"200", b"", keys.public.encode(), b""],
        keys.public,
        "",
    )
    assert zap_answer(request(bytes.fromhex(stranger.public)), keys) == (
        [b"1.0", b"7", b"400", b"", b"", b""],
        stranger.public,
        "the key is not among the allowed ones",
    )


@pytest.mark.parametrize(
    "asked",
    [
        request(b""),
        request(b"short"),
        request(bytes(32), b"NULL"),
        request(bytes(32), b"PLAIN"),
        request(bytes(32))[:6],
        [*request(bytes(32)), b"more"],
        [b"1.0", b"7"],
    ],
)
def test_odd_questions_let_nobody_in(asked: list[bytes]) -> None:
    """Not even with the right key, where it was not proven as one."""
    keys = Keys.drawn()
    proper = bytes.fromhex(keys.public)
    asked = [proper if each == bytes(32) else each for each in asked]
    answer, key, why = zap_answer(asked, keys)
    assert answer == [b"1.0", b"7", b"400", b"", b"", b""]
    assert (why, key in ("", "73686f7274")) == (
        "the key is not among the allowed ones",
        True,
    )


def test_a_list_that_cannot_be_read_lets_nobody_in(home: Path) -> None:
    keys, stranger = Keys.create(home), Keys.drawn()
    (home / "allowed").mkdir(mode=0o700)
    (home / "allowed" / "a.key").write_text(stranger.public)
    home.chmod(0o755)
    answer, _, why = zap_answer(request(bytes.fromhex(stranger.public)), keys)
    assert answer[2] == b"400"
    assert "its mode is 0755" in why
