"""The layers of remote calls point one way, and nothing below them needs them.

Which of them knows of messages is asked in `tests/rpc/api/test_layers.py`.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RPC = ROOT / "runtime" / "rpc"

# What a layer may import of the others, beside itself; identities are everybody's.
MAY: dict[str, tuple[str, ...]] = {
    "protocol": (),
    "transport": (),
    "codec": ("protocol.events",),
    "agent": ("protocol", "transport", "codec"),
    "api": ("agent", "codec", "protocol.events", "transport"),
}


def imported(source: str) -> set[str]:
    """What a text imports of `runtime.rpc`, without that prefix."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "everyorder.runtime.rpc":
                names = [f"everyorder.runtime.rpc.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {
            name.removeprefix("everyorder.runtime.rpc.")
            for name in names
            if name.startswith("everyorder.runtime.rpc.")
        }
    return found


def wrong(layer: str, source: str) -> list[str]:
    """What a file of a layer imports and may not."""
    allowed = ("protocol.identities", layer, *MAY[layer])
    return sorted(
        name
        for name in imported(source)
        if not any(name == each or name.startswith(f"{each}.") for each in allowed)
    )


@pytest.mark.parametrize("layer", MAY)
def test_layers_point_one_way(layer: str) -> None:
    files = sorted((RPC / layer).rglob("*.py")) or [RPC / f"{layer}.py"]
    found = {file.name: wrong(layer, file.read_text("utf-8")) for file in files}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("codec", "from everyorder.runtime.rpc.protocol.session import Session"),
        ("transport", "def f():\n    import everyorder.runtime.rpc.protocol.session"),
        ("protocol", "from everyorder.runtime.rpc.agent.agent import Agent"),
        ("agent", "from everyorder.runtime.rpc import api"),
        ("protocol", "from everyorder.runtime.rpc.codec import pack"),
    ],
)
def test_one_that_pointed_back_would_be_seen(layer: str, source: str) -> None:
    assert wrong(layer, source)


def test_nothing_below_imports_remote_calls() -> None:
    """All of the runtime but `rpc` is whole where that is not installed."""
    found = [
        file.relative_to(ROOT).as_posix()
        for file in sorted((ROOT / "runtime").rglob("*.py"))
        if RPC not in file.parents
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("everyorder.runtime.rpc")
        )
        or (
            isinstance(node, ast.Import)
            and any(
                alias.name.startswith("everyorder.runtime.rpc") for alias in node.names
            )
        )
    ]
    assert found == []


WITHOUT = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if f"{name}.".startswith("everyorder.runtime.rpc."):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
from everyorder import runtime
import everyorder.runtime.script, everyorder.runtime.jit, everyorder.runtime.futures
def twice(x: int) -> int:
    fut = runtime.jit.fork(double, x)
    return runtime.jit.wait(fut)
def double(x: int) -> int:
    return x * 2
assert runtime.jit.script(twice)(4) == 8
def calls(x: int) -> int:
    return rpc_sync("w", double, (x,))
try:
    runtime.jit.script(calls)
except Exception as error:
    assert "rpc_sync" in str(error), error
else:
    raise AssertionError("an unknown name was compiled")
assert not [name for name in sys.modules if name.startswith("everyorder.runtime.rpc")]
"""


def test_scripts_work_where_remote_calls_are_absent(tmp_path: Path) -> None:
    program = tmp_path / "without.py"
    program.write_text(WITHOUT)
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=300,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
