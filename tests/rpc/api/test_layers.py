"""Which layer knows what: messages lie below the agent, values above it.

The point of it: what programs, the profiler, references and scripts see are values and
futures of values.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[3] / "runtime"
# Who may know messages and bytes on wires.
BELOW = ("rpc/protocol/",)
# The chapters of the protocol that only these may know.
HIDDEN = (
    *("protocol.messages", "protocol.wire", "protocol.session", "protocol.core"),
    *("protocol.packets", "protocol.channel", "protocol.call_machine"),
    *("protocol.membership", "protocol.reference_machine"),
)
# Who may know sockets.
SOCKETS = ("rpc/transport/",)
FILES = sorted(path.relative_to(RUNTIME).as_posix() for path in RUNTIME.rglob("*.py"))
KEYS = "everyorder.runtime.rpc.transport.addresses"
# What programs see, and what is done for them.
SEEN = [
    file
    for file in FILES
    # `lifecycle` starts workers, so it makes a transport.
    if (
        file != "rpc/api/lifecycle.py"
        and file.startswith(("rpc/api/", "rpc/script/", "futures/", "script/", "jit/"))
    )
    or (file.startswith("rpc/") and file.count("/") == 1 and not file.startswith(BELOW))
]


def modules(source: str, texts: bool = True) -> set[str]:
    """The modules that a text imports, wherever it does, also for type checkers.

    With `texts` also what may be loaded by its name.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif texts and isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def knows(source: str, folder: str) -> bool:
    """Whether a text imports something of a folder, or file, of `runtime/rpc`."""
    name = f"everyorder.runtime.rpc.{folder}"
    if "rpc" not in source:
        return False
    return any(each == name or each.startswith(f"{name}.") for each in modules(source))


@cache
def read(file: str) -> str:
    return (RUNTIME / file).read_text(encoding="utf-8")


@pytest.mark.spec("rpc 0.8", "futures hold values, never messages")
@pytest.mark.spec("rpc 0.11", "messages are seen by no program, profiler or reference")
@pytest.mark.parametrize("folder", ["protocol.messages", "protocol.wire"])
def test_messages_are_known_below_the_agent_only(folder: str) -> None:
    known = [file for file in FILES if knows(read(file), folder)]
    assert known
    assert [file for file in known if not file.startswith(BELOW)] == []


@pytest.mark.spec("rpc 0.9", "a profiler needs a future of anything")
def test_what_programs_see_knows_values_only() -> None:
    assert "rpc/api/rref.py" in SEEN
    for file in SEEN:
        source = read(file)
        if file == "rpc/__init__.py":
            # Keys are files, which people make before there is a worker.
            assert KEYS in source
            source = source.replace(KEYS, "keys")
        for folder in (*HIDDEN, "transport"):
            assert not knows(source, folder), file


def test_sockets_are_known_by_transports_only() -> None:
    known = [
        file
        for file in FILES
        if file.startswith("rpc/") and modules(read(file), False) & {"socket", "zmq"}
    ]
    assert [file for file in known if not file.startswith(SOCKETS)] == []


@pytest.mark.spec("rpc 0.11", "messages are seen by no program, profiler or reference")
@pytest.mark.parametrize(
    "source",
    [
        "from everyorder.runtime.rpc.protocol.messages import Call",
        "import everyorder.runtime.rpc.protocol.messages",
        "from everyorder.runtime.rpc.protocol import messages",
        "def f():\n    from everyorder.runtime.rpc.protocol.messages import KINDS",
        "if TYPE_CHECKING:\n"
        "    from everyorder.runtime.rpc.protocol.messages import Call",
        "load('everyorder.runtime.rpc.protocol.messages')",
    ],
)
def test_a_layer_that_knew_a_message_would_be_seen(source: str) -> None:
    assert knows(source, "protocol.messages")
    assert not knows(
        "from everyorder.runtime.rpc.protocol.identities import WorkerNode",
        "protocol.messages",
    )
