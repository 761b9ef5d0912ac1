"""Expect files on disk: read whole, written whole, or not at all."""

import os
import re
from pathlib import Path
from threading import Thread

import pytest
from filelock import FileLock

from everyorder.harness.base.errors import BadScenario, DamagedExpectFile, FileError
from everyorder.harness.expectations import (
    Document,
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


THREE = tuple(f"scenarios/test_demo/{name}" for name in "abc")


def three() -> dict[str, Document | None]:
    return {name: document(scenario=name) for name in THREE}


def test_nothing_is_written_if_one_file_cannot_be(tmp_path: Path) -> None:
    store = Store(tmp_path)
    other = "scenarios/test_other/x"
    store.path(other).mkdir(parents=True)
    with pytest.raises(FileError, check=code("CannotWriteExpectFile")) as caught:
        store.apply({NAME: document(), other: document(scenario=other)})
    assert str(caught.value) == (
        f"expect/{other}.txt cannot be written: Is a directory; no expect file was "
        "written. Remove the cause, and accept again."
    )
    assert caught.value.done == ()
    assert tree(tmp_path) == []


class Renames:
    """Records what is forced to the disk and renamed; the rename `fault` fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, str]] = []
        self.fault: dict[int, BaseException] = {}
        self._replace, self._fsync = os.replace, os.fsync
        monkeypatch.setattr(os, "replace", self.replace)
        monkeypatch.setattr(os, "fsync", self.fsync)

    def replace(self, source: Path, target: Path) -> None:
        if target.suffix == ".txt":
            if error := self.fault.get(len(self.of("rename"))):
                raise error
            self.calls.append(("rename", source.name))
        self._replace(source, target)

    def fsync(self, file: int) -> None:
        self.calls.append(("fsync", Path(f"/proc/self/fd/{file}").readlink().name))
        self._fsync(file)

    def of(self, kind: str) -> list[str]:
        return [name for each, name in self.calls if each == kind]


@pytest.fixture
def renames(monkeypatch: pytest.MonkeyPatch) -> Renames:
    return Renames(monkeypatch)


def test_temporaries_have_random_names(tmp_path: Path, renames: Renames) -> None:
    store = Store(tmp_path)
    store.apply(three())
    store.apply(dict.fromkeys(THREE))
    store.apply(three())
    names = renames.of("rename")
    assert len(set(names)) == 6
    for name in names:
        assert re.fullmatch(r"\.everyorder-[0-9a-f]{16}\.tmp", name)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of open files")
def test_texts_are_on_the_disk_before_a_rename_and_folders_after(
    tmp_path: Path, renames: Renames
) -> None:
    Store(tmp_path).apply(three())
    temporaries = renames.of("rename")
    first = renames.calls.index(("rename", temporaries[0]))
    assert {name for _, name in renames.calls[:first]} >= set(temporaries)
    last = renames.calls.index(("rename", temporaries[-1]))
    synced = {name for _, name in renames.calls[last + 1 :]}
    assert synced == {"test_demo", "scenarios", "expect", tmp_path.name}


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (
            KeyboardInterrupt(),
            "AcceptInterrupted",
            f"interrupted; 1 of 3 files written: expect/{THREE[0]}.txt. Accept again "
            "to write the rest, or restore the files from version control.",
        ),
        (
            OSError("disk full"),
            "CannotWriteExpectFile",
            f"expect/{THREE[1]}.txt cannot be written: disk full; 1 of 3 files "
            f"written: expect/{THREE[0]}.txt. Remove the cause, and accept again.",
        ),
    ],
)
def test_an_accept_that_is_interrupted_says_how_far_it_came(
    tmp_path: Path, renames: Renames, error: BaseException, kind: str, text: str
) -> None:
    store = Store(tmp_path)
    renames.fault = {1: error}
    with pytest.raises(FileError, check=code(kind)) as caught:
        store.apply(three())
    assert str(caught.value) == text
    assert caught.value.done == (store.name(THREE[0]),)
    assert tree(tmp_path) == [f"expect/{THREE[0]}.txt"]
    assert store.interrupted() == ""
    renames.fault = {}
    assert store.apply(three()) == tuple(map(store.name, THREE[1:]))


def test_an_interruption_right_after_a_rename_counts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def interrupting(source: Path, target: Path) -> None:
        replace(source, target)
        if target.name == "b.txt":
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupting)
    with pytest.raises(FileError, match="2 of 3 files written"):
        Store(tmp_path).apply(three())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked child")
def test_an_accept_that_was_killed_is_told_by_the_next_run(
    tmp_path: Path, renames: Renames
) -> None:
    store = Store(tmp_path)
    child = os.fork()
    if not child:
        monkeypatch = pytest.MonkeyPatch()
        replace = os.replace

        def dying(source: Path, target: Path) -> None:
            if target.name == "c.txt":
                os._exit(9)
            replace(source, target)

        monkeypatch.setattr(os, "replace", dying)
        try:
            store.apply(three())
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert store.interrupted() == (
        "an accept was interrupted: 2 of 3 files written, each of them whole; not "
        f"written: expect/{THREE[2]}.txt. Accept again, or restore the files from "
        "version control."
    )
    assert store.scenarios() == THREE[:2]
    assert len(tree(tmp_path)) == 3  # with the temporary
    assert store.apply(three()) == (store.name(THREE[2]),)
    assert tree(tmp_path) == [f"expect/{name}.txt" for name in THREE]
    assert store.interrupted() == ""


def test_observations_that_wait_are_never_read_as_expectations(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.apply({NAME: document()})
    waiting = document(uses=("call()",))
    assert store.save({NAME: waiting}) == (f"expect/{NAME}.new",)
    assert (store.saved(), store.scenarios()) == ((NAME,), (NAME,))
    assert (store.read(NAME), store.read_saved(NAME)) == (document(), waiting)
    path, beside = store.path(NAME), store.path(NAME, ".new")
    path.write_bytes(beside.read_bytes())
    with pytest.raises(DamagedExpectFile, match="not by renaming the file"):
        store.read(NAME)
    store.apply({NAME: document()})
    assert store.saved() == ()
    beside.write_bytes(path.read_bytes())
    with pytest.raises(DamagedExpectFile, match="expected 'everyorder observations"):
        store.read_saved(NAME)
    assert store.save({NAME: None}) == (f"expect/{NAME}.new",)
    assert tree(tmp_path) == [f"expect/{NAME}.txt"]


def test_permissions_stay(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.apply({NAME: document()})
    store.path(NAME).chmod(0o640)
    store.apply({NAME: document(uses=("call()",))})
    assert store.path(NAME).stat().st_mode & 0o777 == 0o640


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
        "seconds; no expect file was written. Remove the cause, and accept again."
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
    ("path", "part", "problem", "better"),
    [
        ("test_a/aux", "aux", "is the name of a device on Windows", "aux_"),
        ("Com1.x/a", "Com1.x", "is the name of a device on Windows", "Com1_.x"),
        ("LPT¹/a", "LPT¹", "is the name of a device on Windows", "LPT¹_"),
        ("a./b", "a.", "begins or ends with a space or dot, which Windows", "a"),
        ("a/b ", "b ", "begins or ends with a space or dot, which Windows", "b"),
        ("a/.b", ".b", "begins with a dot, which hides it", "b"),
        ("a/b?c", "b?c", "contains '?', which Windows does not allow", "b_c"),
        ("a/b\tc", "b\tc", "contains '\\t', which Windows does not allow", "b_c"),
        ("a/" + "x" * 140, "x" * 140, "has 140 bytes, and some systems", "x" * 69),
        ("é" * 72 + "/a", "é" * 72, "has 144 bytes, and some systems al", "é" * 35),
    ],
)
def test_names_that_some_system_does_not_take(
    tmp_path: Path, path: str, part: str, problem: str, better: str
) -> None:
    store = Store(tmp_path)
    with pytest.raises(BadScenario, check=code("BadScenarioPath")) as caught:
        store.apply({path: document(scenario=path)})
    text = str(caught.value)
    start = f"no expect file can belong to the scenario {path!r}: {part!r} {problem}"
    assert text.startswith(start)
    assert text.endswith(
        "Rename the variable, test, file or folder, or pass name= to the scenario: "
        f"{better!r}, for example."
    )
    assert store.path(path.replace(part, better))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["a/" + "x" * 139, "aux_/com0", "a.b/con-2", "é/ñ"])
def test_names_that_every_system_takes(tmp_path: Path, path: str) -> None:
    store = Store(tmp_path)
    assert store.apply({path: document(scenario=path)}) == (f"expect/{path}.txt",)
    assert store.read(path) == document(scenario=path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a/Pair", "a/pair"),
        ("A/pair", "a/pair"),
        ("a/stra\u00dfe", "a/STRASSE"),
        ("a/\u00e9", "a/e\u0301"),
        ("a", "A.txt/b"),
        ("A.txt/b", "a"),
    ],
)
def test_names_that_some_system_confuses(tmp_path: Path, old: str, new: str) -> None:
    store = Store(tmp_path)
    store.apply({old: document(scenario=old)})
    with pytest.raises(BadScenario, check=code("BadScenarioPath")) as caught:
        store.apply({new: document(scenario=new)})
    assert str(caught.value) == (
        f"no expect file can belong to the scenario {new!r}: systems that ignore case, "
        f"or the form of composed characters, confuse its file with that of {old!r}. "
        "Rename one of the two."
    )
    # A renamed scenario replaces the old one.
    store.apply({old: None, new: document(scenario=new)})
    assert store.scenarios() == (new,)


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


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    """It was replaced by a file, and its target kept the old text."""
    store = Store(tmp_path)
    one = document(scenario="test_a/one")
    store.apply({"test_a/one": one})
    file = tmp_path / "expect" / "test_a" / "one.txt"
    target = tmp_path / "elsewhere.txt"
    file.rename(target)
    file.symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(FileError) as caught:
        store.apply({"test_a/one": document(scenario="test_a/one", steps=("other",))})
    assert "symbolic link" in str(caught.value)
    assert file.is_symlink()
    assert target.read_bytes() == before


@pytest.mark.parametrize(
    "record",
    ['{"files": [1]}', '{"files": 5}', '{"files": {"../outside/one.txt": null}}', "["],
)
def test_a_record_of_somebody_else_touches_nothing_outside(
    tmp_path: Path, record: str
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / ".everyorder", outside):
        folder.mkdir(parents=True)
    (root / ".everyorder" / "accept.json").write_text(record)
    left = outside / ".everyorder-0.tmp"
    left.touch()
    Store(root).apply({"test_a/one": document(scenario="test_a/one")})
    assert left.exists()
    assert (root / "expect" / "test_a" / "one.txt").is_file()
