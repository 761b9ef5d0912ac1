"""Programs where remote calls are not there, or come later: each in a fresh process."""

import subprocess
import sys
from os import environ
from pathlib import Path
from shutil import copy, copytree, ignore_patterns
from typing import Any
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder

from everyorder.harness import Scenario

PLAIN = """
def twice(x: Tensor) -> Tensor:
    return x + x

def plain(x: Tensor, n: int) -> Tensor:
    return twice(x) * n
"""
CALLS = """
def calls(to: str, x: Tensor) -> Tensor:
    return rpc_sync(to, calls, (to, x))
"""
TYPED = """
def typed(r: RRef[Tensor]) -> int:
    return 1
"""
HIDING = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if (name + ".").startswith("everyorder.runtime.rpc."):
            raise ModuleNotFoundError(f"no {name}", name=name)

sys.meta_path.insert(0, Hidden())
"""
PROGRAM = """
import io, sys
from everyorder import runtime
from everyorder.runtime import jit
from everyorder.runtime.script.ir import node_kinds as kinds

unit = jit.CompilationUnit({plain!r})
print(unit.plain(runtime.tensor([1.0, 2.0]), 3).tolist())
buffer = io.BytesIO()
jit.save(unit.plain, buffer)
buffer.seek(0)
print(jit.load(buffer)(runtime.tensor([1.0]), 1).tolist())
for text in {calls!r}, {typed!r}:
    try:
        jit.CompilationUnit(text)
    except Exception as error:
        print(type(error).__name__, "-", str(error).splitlines()[0])
print([*kinds._PLUG_IN_KINDS.rows], [n for n in sys.modules if ".runtime.rpc" in n])
"""


PROGRAM = PROGRAM.format(plain=PLAIN, calls=CALLS, typed=TYPED)
PRINTED = [
    "[6.0, 12.0]",
    "[2.0]",
    "UnknownName - `rpc_sync` means nothing here:",
    "AnnotationError - `RRef` is not defined here:",
    "[] []",
]
ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "tests" / "examples" / "sharded_embedding.py"


def run(program: str | Path, **where: Any) -> list[str]:
    """What a program, or that of a file, prints in a process of its own."""
    named = [str(program)] if isinstance(program, Path) else ["-c", program]
    ran: subprocess.CompletedProcess[str] = subprocess.run(
        [sys.executable, *named],
        capture_output=True,
        text=True,
        check=False,
        **where,
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


@pytest.mark.spec("rpc 0.5", "remote calls may be absent")
def test_without_the_package_everything_else_works() -> None:
    """3.9, P14: names of remote calls are unknown names, like any others."""
    assert run(HIDING + PROGRAM) == PRINTED


@pytest.mark.slow
def test_a_wheel_without_the_package_compiles_programs(tmp_path: Path) -> None:
    """It is built of a tree that has no `runtime/rpc`, and nothing else is loaded."""
    tree, place = tmp_path / "tree", tmp_path / "place"
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        tree.mkdir(exist_ok=True)
        copy(ROOT / name, tree)
    copytree(ROOT / "everyorder", tree / "everyorder", symlinks=True)
    for name in ("runtime", "invariants", "harness"):
        copytree(ROOT / name, tree / name, ignore=ignore_patterns("rpc", "__pycache__"))
    (wheel,) = WheelBuilder(str(tree)).build(directory=str(tmp_path))
    ZipFile(wheel).extractall(place)
    assert not (place / "everyorder" / "runtime" / "rpc").exists()

    # The place comes before what is installed.
    where = {"cwd": place, "env": {**environ, "PYTHONPATH": str(place)}}
    loaded = "print(runtime.__file__)"
    printed = run(PROGRAM + loaded, **where)
    assert printed == [*PRINTED, str(place / "everyorder" / "runtime" / "__init__.py")]
    shown = run(EXAMPLE, **where)
    assert shown
    assert shown == run(EXAMPLE, cwd=ROOT)


ORDER = """
import sys
for name in {order!r}:
    __import__(name)
from everyorder.runtime.rpc import RRef, rpc_sync
from everyorder.runtime import jit
from everyorder.runtime.schema import annotation
from everyorder.runtime.script.emission import sugar
from everyorder.runtime.script.ir import node_kinds as kinds
from everyorder.runtime.script.ir import program
from everyorder.runtime.script.executor import node_kernels as steps
from everyorder.runtime.script.executor import python_interop as boundary
from everyorder.runtime.script.archive import spelling as expressions
from everyorder.runtime.script.frontend import sections
print([*kinds._PLUG_IN_KINDS.rows], [*expressions.PLUG_IN_WORDS.rows],
      len(boundary._PLUG_IN_TESTS.rows))
print(sugar.special_form(rpc_sync).describe(), annotation._WRAPPERS.rows[RRef])
print(sorted(each.__name__ for each in program._PLUG_IN_TYPES.rows.registered),
      len(sections()) > 100)
print(all(kind in steps._MAKERS.rows for kind in kinds._PLUG_IN_KINDS.rows))
print(all(kind in expressions.FORMS.rows for kind in kinds._PLUG_IN_KINDS.rows))
"""
# The compiler first, or remote calls, or a part of them that names what programs have.
ORDERS = (
    ("everyorder.runtime.jit", "everyorder.runtime.rpc"),
    ("everyorder.runtime.rpc", "everyorder.runtime.jit"),
    ("everyorder.runtime.rpc.api.rref", "everyorder.runtime.jit"),
    ("everyorder.runtime.rpc.api.remote_calls", "everyorder.runtime.script.archive"),
)


@pytest.mark.spec("rpc 3.9", "taken back")
@pytest.mark.slow
def test_the_order_of_imports_makes_no_difference() -> None:
    """0.5: whoever is first finds the same in the end."""
    told = {tuple(run(ORDER.format(order=order))) for order in ORDERS}
    assert len(told) == 1
    (lines,) = told
    assert lines[0].count("prim::") == 10
    assert lines[3:] == ("True", "True")


def test_remote_calls_load_no_compiler_before_they_are_named() -> None:
    lines = run(
        """
import sys
from everyorder import runtime
import everyorder.runtime.rpc
root = "everyorder.runtime."
print(*(root + n in sys.modules for n in ("script.emission", "rpc.api")))
import everyorder.runtime.jit
from everyorder.runtime.script.ir import node_kinds as kinds
print(len(kinds._PLUG_IN_KINDS.rows), root + "rpc.api" in sys.modules)
runtime.rpc.rpc_sync
print(len(kinds._PLUG_IN_KINDS.rows))
"""
    )
    assert lines == ["False False", "0 False", "10"]


# The compiler, archives, modules of programs, and what plugs into all three.
EXTENDED = (
    *("everyorder.runtime.jit", "everyorder.runtime.rpc.api", "everyorder.runtime.nn"),
    "everyorder.runtime.script.archive",
)


def _explored(*modules: str, path: str | Path = ".") -> Any:
    return Scenario.of_imports(*modules, path=path, timeout=300).explore(jobs=1)


@pytest.mark.slow
def test_imports_are_explored() -> None:
    """Every subset in every order; all globals of the project are compared."""
    report = _explored(*EXTENDED[:3])
    assert report.passed, report.render()
    assert [row.orders for row in report.rows] == [3, 6, 6]


@pytest.mark.nightly
def test_all_imports_are_explored() -> None:
    report = _explored(*EXTENDED)
    assert report.passed, report.render()
    assert [row.orders for row in report.rows] == [4, 12, 24, 24]


@pytest.mark.slow
def test_an_import_that_is_not_independent_is_found(tmp_path: Path) -> None:
    """A plug-in that adds a row only if the compiler was loaded before it."""
    (tmp_path / "hasty.py").write_text(
        """import sys
if "everyorder.runtime.jit" in sys.modules:
    from everyorder.runtime.script.frontend import language
    ADDED = language.__name__
"""
    )
    report = _explored("hasty", EXTENDED[0], path=tmp_path)
    assert not report.passed
    assert "hasty.ADDED" in report.render()
