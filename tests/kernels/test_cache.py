"""Machine code on disk: when it is believed, and when not."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.compile import cache, jit
from everyorder.runtime.kernels.compile.cache import (
    KernelFile,
    digest_of,
    prune,
    roots,
    usable_folder,
)
from everyorder.runtime.kernels.compile.jit import Family

compiled_only = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"
)

PROGRAM = """
import numpy as np
from everyorder.runtime.kernels.compile.jit import Family
from tests.kernels.test_cache import compilations
def body(x, out):
    for i in range(x.size):
        out[i] = x[i] * 3
with compilations() as compiled:
    entry = Family("times", body, "void(T[::1], T[::1])")["float64"]
out = np.empty(2)
entry(np.array([1.0, 2.0]), out)
print(len(compiled), out.tolist())
"""


@contextmanager
def compilations() -> Iterator[list[Any]]:
    """What Numba compiles meanwhile."""
    from numba.core import event

    untyped: Any = event
    compiled: list[Any] = []

    class Recorder(untyped.Listener):  # type: ignore[misc]  # Numba's, untyped
        def on_start(self, begun: Any) -> None:
            compiled.append(begun)

        def on_end(self, ended: Any) -> None:
            pass

    recorder = Recorder()
    untyped.register("numba:compile", recorder)
    try:
        yield compiled
    finally:
        untyped.unregister("numba:compile", recorder)


def _in_process(root: Path) -> str:
    environment = os.environ | {"EVERYORDER_CACHE_DIR": str(root)}
    environment.pop("NUMBA_DISABLE_JIT", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def _times(factor: float) -> Family:
    def body(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = x[i] * factor

    return Family("times", body, "void(T[::1], T[::1])")


def _here(factor: float) -> tuple[int, float]:
    """How many functions were compiled for a fresh family, and what it gives."""
    out = np.empty(1)
    with compilations() as compiled:
        entry = _times(factor)["float64"]
    entry(np.array([2.0]), out)
    return len(compiled), float(out[0])


def _files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.bin"))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(jit, "folder", lambda: tmp_path)
    return tmp_path


@pytest.mark.slow
def test_processes_at_once_leave_one_good_file(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: _in_process(tmp_path), range(2)))
    assert {answer.split(" ", 1)[1] for answer in answers} == {"[3.0, 6.0]"}
    (file,) = _files(tmp_path)
    assert file.name.startswith("times_float64_")
    assert _in_process(tmp_path) == "0 [3.0, 6.0]"
    assert _files(tmp_path) == [file]
    assert not list(tmp_path.rglob("new-*"))


@compiled_only
def test_another_body_is_another_file(kept: Path) -> None:
    assert [_here(3), _here(3), _here(4), _here(4)] == [(1, 6), (0, 6), (1, 8), (0, 8)]
    assert len(_files(kept)) == 2


@compiled_only
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "garbage"])
def test_a_damaged_file_is_compiled_anew(kept: Path, damage: str) -> None:
    _here(3)
    (file,) = _files(kept)
    good = file.read_bytes()
    garbage = b"no pickle"
    file.write_bytes(
        {
            "flip": good[:-50] + bytes([good[-50] ^ 1]) + good[-49:],
            "cut": good[: len(good) // 2],
            "empty": b"",
            "garbage": hashlib.sha256(garbage).digest() + garbage,
        }[damage]
    )
    assert [_here(3), _here(3)] == [(1, 6), (0, 6)]


def test_the_digest_covers_sources_and_facts(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("x = 1\n")
    two.write_text("y = 1\n")
    first = digest_of((one, two), (1,))
    assert len(first) == 32
    assert digest_of((one, two), (1,)) == first
    assert digest_of((one, two), (2,)) != first
    assert digest_of((one,), (1,)) != first
    two.write_text("y = 2\n")
    assert digest_of((one, two), (1,)) != first
    assert digest_of((one, two.rename(tmp_path / "2.py")), (1,)) != first


def test_the_machinery_exists() -> None:
    here = Path(cache.__file__).parents[1]
    assert all((here / name).is_file() for name in cache.MACHINERY)


def test_facts_name_the_compiler_and_the_processor() -> None:
    import numba

    facts = cache.build_facts()
    assert facts[0] == numba.__version__
    assert facts[2] == np.__version__
    assert sys.version in facts


def test_a_root_that_is_named_is_the_only_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVERYORDER_CACHE_DIR", str(tmp_path))
    assert list(roots()) == [tmp_path]


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, Path("/x/everyorder")),
        ("linux", {"XDG_CACHE_HOME": "", "HOME": "/h"}, Path("/h/.cache/everyorder")),
        ("darwin", {"HOME": "/h"}, Path("/h/Library/Caches/everyorder")),
        ("win32", {"LOCALAPPDATA": "/l"}, Path("/l/everyorder/Cache")),
    ],
)
def test_the_platform_names_the_root(
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    variables: dict[str, str],
    expected: Path,
) -> None:
    monkeypatch.delenv("EVERYORDER_CACHE_DIR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    first, second = roots()
    assert first == expected
    assert second.name.startswith("everyorder-")


DIGEST = "0" * 32
OURS = f"kernels-{DIGEST}"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder that is ours alone, whatever the umask."""
    tmp_path.chmod(0o700)
    return tmp_path


def test_a_root_that_cannot_be_written_is_no_root(private: Path) -> None:
    (private / "file").write_text("")
    assert usable_folder(private / "file", DIGEST) is None
    assert usable_folder(private / "file" / "root", DIGEST) is None
    folder = usable_folder(private / "new" / "root", DIGEST)
    assert folder == private / "new" / "root" / OURS
    made = (private / "new", private / "new" / "root", folder)
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700] * 3
    assert usable_folder(private / "new" / "root", DIGEST) == folder


needs_owners = pytest.mark.skipif(
    not hasattr(os, "geteuid"), reason="the system knows no owners"
)


@needs_owners
def test_a_folder_of_somebody_else_is_not_used(
    monkeypatch: pytest.MonkeyPatch, private: Path
) -> None:
    assert usable_folder(private / "root", DIGEST) is not None
    owner = os.geteuid()
    # Everybody's, as the temporary folder: what lies in it is asked for its owner.
    private.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert usable_folder(private / "root", DIGEST) is None


@needs_owners
@pytest.mark.parametrize("open_to", [0o020, 0o002])
@pytest.mark.parametrize("name", ["root", f"root/{OURS}"])
def test_a_folder_that_others_may_write_to_is_not_used(
    private: Path, name: str, open_to: int
) -> None:
    root = private / "root"
    assert usable_folder(root, DIGEST) == root / OURS
    (private / name).chmod(0o700 | open_to)
    assert usable_folder(root, DIGEST) is None
    (private / name).chmod(0o755)
    assert usable_folder(root, DIGEST) == root / OURS


@pytest.mark.parametrize("name", ["root", f"root/{OURS}"])
def test_a_link_is_no_folder(private: Path, name: str) -> None:
    (private / "elsewhere").mkdir(mode=0o700)
    (private / name).parent.mkdir(mode=0o700, exist_ok=True)
    (private / name).symlink_to(private / "elsewhere")
    assert usable_folder(private / "root", DIGEST) is None
    assert not list((private / "elsewhere").iterdir())


def _status(mode: int, owner: int) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))


@needs_owners
def test_a_root_lies_where_nobody_else_can_exchange_it() -> None:
    me, other = os.geteuid(), os.geteuid() + 1
    safe = [(0o700, me), (0o775, me), (0o755, 0), (0o1777, 0), (0o1777, other)]
    unsafe = [(0o755, other), (0o777, me), (0o777, 0)]
    assert all(cache.is_safe_parent(_status(*each)) for each in safe)
    assert not any(cache.is_safe_parent(_status(*each)) for each in unsafe)


@needs_owners
def test_a_parent_open_to_everybody_is_not_used(private: Path) -> None:
    private.chmod(0o777)
    assert usable_folder(private / "root", DIGEST) is None
    private.chmod(0o1777)
    assert usable_folder(private / "root", DIGEST) == private / "root" / OURS


def test_without_owners_everything_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "geteuid", raising=False)
    assert cache.is_private(_status(0o777, 5))
    assert cache.is_safe_parent(_status(0o777, 5))


@needs_owners
@pytest.mark.parametrize("fault", ["group", "everybody", "link", "pipe", "owner"])
def test_a_file_that_others_could_have_written_is_not_read(
    monkeypatch: pytest.MonkeyPatch, private: Path, fault: str
) -> None:
    content = b"content"
    path = private / "name.bin"
    path.write_bytes(hashlib.sha256(content).digest() + content)
    path.chmod(0o644)
    file = KernelFile(private, "name")
    assert file._read() == content
    if fault == "group":
        path.chmod(0o620)
    elif fault == "everybody":
        path.chmod(0o602)
    elif fault == "link":
        path.rename(private / "target")
        path.symlink_to(private / "target")
    elif fault == "pipe":
        path.unlink()
        os.mkfifo(path, 0o600)
    else:
        owner = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert file._read() is None


def test_unused_folders_of_ours_go_and_nothing_else(tmp_path: Path) -> None:
    old, recent, own = (f"kernels-{letter * 32}" for letter in "abc")
    unmarked, plain = "kernels-" + "d" * 32, "e" * 32
    others = {"precious", "kernels-" + "A" * 32, "kernels-abc", plain, unmarked}
    long_ago = time.time() - 31 * 86_400
    for name in (old, recent, own, *others):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("")
        if name != unmarked:
            (tmp_path / name / cache.MARKER).touch()
        if name != recent:
            os.utime(tmp_path / name, (long_ago, long_ago))
    prune(tmp_path, keep=own)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {recent, own, *others}


def test_making_a_folder_prunes(private: Path) -> None:
    root = private / "root"
    old = usable_folder(root, "a" * 32)
    assert old is not None
    os.utime(old, (0, 0))
    usable_folder(root, "b" * 32)
    assert {path.name for path in root.iterdir()} == {"kernels-" + "b" * 32}


def test_a_file_that_cannot_be_renamed_leaves_nothing(private: Path) -> None:
    class Data:
        def _reduce(self) -> tuple[int, ...]:
            return (1,)

    # A folder in the way: the system refuses to replace it by a file.
    (private / "name.bin").mkdir()
    data: Any = Data()
    KernelFile(private, "name").save_overload(None, data)
    assert [path.name for path in private.iterdir()] == ["name.bin"]


def test_without_a_folder_nothing_is_kept_and_nothing_fails() -> None:
    file = KernelFile(None, "name")
    file.save_overload(None, None)
    file.flush()
    assert file.load_overload(None, None) is None


def test_a_folder_that_vanished_is_no_failure(tmp_path: Path) -> None:
    class Data:
        def _reduce(self) -> tuple[int, ...]:
            return (1,)

    file = KernelFile(tmp_path / "gone", "name")
    data: Any = Data()
    file.save_overload(None, data)
    assert file.load_overload(None, None) is None
    kept = KernelFile(tmp_path, "name")
    kept.save_overload(None, data)
    assert [path.name for path in tmp_path.iterdir()] == ["name.bin"]
    kept.flush()
    assert list(tmp_path.iterdir()) == []
