"""Kernels that are compiled ahead."""

import errno
import os
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from everyorder.harness.cli import main
from everyorder.harness.cli.command import REFUSED
from everyorder.runtime.kernels import warm
from everyorder.runtime.kernels.compile import cache
from everyorder.runtime.kernels.warm import (
    KernelName,
    common_kernels,
    compile_kernels,
    families,
)
from everyorder.runtime.schema.enums import DType
from tests.kernels.test_cache import compiled_only


def test_each_common_kernel_has_a_family_and_dtypes() -> None:
    kernels, known = common_kernels(), families()
    assert len(set(kernels)) == len(kernels) > 200
    for kernel in kernels:
        letters = {
            letter for letter in "TU" if f"{letter}[" in known[kernel.family].signature
        }
        assert len(kernel.dtypes) >= len(letters), kernel
        assert all(DType.named(name) for name in kernel.dtypes), kernel


@compiled_only
@pytest.mark.slow
def test_what_is_stored_is_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERYORDER_CACHE_DIR", str(tmp_path))
    some = [KernelName("add", ("float32",)), KernelName("add", ("int64",))]
    first = list(compile_kernels(some, 2))
    assert sorted(each.kernel for each in first) == some
    assert all(each.seconds > 0 for each in first)
    stored = {file.name for file in tmp_path.glob("kernels-*/*.bin")}
    assert len(stored) == len(some)
    again = list(compile_kernels(some, 1))
    assert [each.seconds for each in again] == [0, 0]
    assert {file.name for file in tmp_path.glob("kernels-*/*.bin")} == stored


def test_an_unknown_family_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERYORDER_CACHE_DIR", str(tmp_path))
    with pytest.raises(KeyError, match="no_such_family"):
        list(compile_kernels([KernelName("no_such_family", ("float32",))], 1))


def test_the_command_says_how_many_and_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def compile_kernels(kernels: Any, processes: int) -> Any:
        asked.append(processes)
        return iter([warm.Compiled(kernels[0], 0.5), warm.Compiled(kernels[1], 0)])

    some = [KernelName("add", ("float32",)), KernelName("mul", ("float32",))]
    monkeypatch.setattr(warm, "common_kernels", lambda: some)
    monkeypatch.setattr(warm, "compile_kernels", compile_kernels)
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    monkeypatch.setattr("numba.config.DISABLE_JIT", 0)
    result = CliRunner().invoke(main, ["runtime", "warm", "--jobs", "7"])
    assert (asked, result.exit_code) == ([2], 0)
    first, second = result.output.splitlines()
    assert first.startswith("2 kernels are stored: 1 compiled in ")
    assert first.endswith(" (--jobs 2), 1 were there")
    assert second == f"folder: {tmp_path}"


def test_the_command_says_why_it_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.DISABLE_JIT", 0)
    monkeypatch.setattr(cache, "folder", lambda: None)
    result = CliRunner().invoke(main, ["runtime", "warm"])
    assert result.exit_code == REFUSED
    assert "set EVERYORDER_CACHE_DIR" in result.output
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    result = CliRunner().invoke(main, ["runtime", "warm"])
    assert result.exit_code == REFUSED
    assert "NUMBA_DISABLE_JIT" in result.output


WITHOUT = """
import sys
from everyorder.harness.cli import main
sys.modules[sys.argv[1]] = None
main(["runtime", "warm"])
"""


@pytest.mark.parametrize("name", ["numba", "numpy"])
def test_the_command_says_what_to_install(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, name],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == REFUSED
    assert "Traceback" not in ran.stderr
    assert f"the package `{name}`" in ran.stderr
    assert "python -m pip install 'everyorder[runtime]'" in ran.stderr


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BrokenProcessPool(), "use fewer --jobs"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left"),
    ],
)
def test_the_command_says_what_went_wrong(
    error: Exception, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_kernels(kernels: Any, processes: int) -> Any:
        yield warm.Compiled(kernels[0], 0.5)
        raise error

    monkeypatch.setattr(warm, "compile_kernels", compile_kernels)
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    monkeypatch.setattr("numba.config.DISABLE_JIT", 0)
    result = CliRunner().invoke(main, ["runtime", "warm"])
    assert result.exit_code == REFUSED
    assert said in result.output


FULL = """
import resource, signal, sys
from everyorder.harness.cli import main
from everyorder.runtime.kernels import warm
if __name__ == "__main__":
    # Files of 1 KiB at most, as on a full disk; the workers inherit it.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
    warm.common_kernels = lambda: [warm.KernelName("add", ("float32",))]
    main(["runtime", "warm"])
"""


@compiled_only
@pytest.mark.slow
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """By whoever compiles: nothing is stored, and nothing is said to be."""
    program = tmp_path / "full.py"
    program.write_text(FULL, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, program],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "EVERYORDER_CACHE_DIR": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == REFUSED, ran.stderr
    assert "cannot be stored" in ran.stderr
    assert not list(tmp_path.glob("cache/*/*.bin"))
