"""Code that travels: of functions within functions, and of `__main__`."""

import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from everyorder.runtime.rpc.codec import pack
from everyorder.runtime.rpc.codec.pickling import digest
from tests.rpc.codec.things import as_received, double, there

SCRIPT = '''
"""One program, run by several processes."""
import sys
from everyorder.runtime.rpc.codec import pack, unpack

SEEN = []


class Counter:
    def __init__(self):
        self.count = 0

    def up(self):
        self.count += 1
        return self.count


def seen(value):
    SEEN.append(value)
    return len(SEEN)


def even(number):
    return number == 0 or odd(number - 1)


def odd(number):
    return number != 0 and even(number - 1)


if __name__ == "__main__":
    if sys.argv[1:] == ["write"]:
        payload = pack([seen, Counter, Counter(), even, [seen]]).payload
        assert len(payload) == 1
        found = unpack(payload)
        assert found[0] is seen and found[1] is Counter and type(found[2]) is Counter
        print(payload[0].hex())
    else:
        found = unpack([bytes.fromhex(sys.stdin.read())])
        print([found[0] is seen, found[1] is Counter, type(found[2]) is Counter])
        print([found[0](1), found[4][0](2), len(SEEN), found[3](4), found[2].up()])
'''

OTHER = """
import sys
from everyorder.runtime.rpc.codec import unpack
found = unpack([bytes.fromhex(sys.stdin.read())])
print([type(found[2]) is found[1], found[4][0] is found[0]])
print([found[0](1), found[0](2), found[3](4), found[2].up(), found[2].up()])
"""


def run(*command: str, given: str = "") -> list[str]:
    done = subprocess.run(
        [sys.executable, *command],
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_main_has_is_that_of_the_same_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of the same program has it, and its state; any other gets the code."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    (written,) = run(str(script), "write")
    same = run(str(script), "read", given=written)
    assert same == ["[True, True, True]", "[1, 2, 2, True, 1]"]
    other = run("-c", OTHER, given=written)
    assert other == ["[True, True]", "[1, 2, True, 1, 2]"]
    changed = tmp_path / "changed.py"
    changed.write_text(SCRIPT.replace("return len(SEEN)", "return 0"))
    assert run(str(changed), "read", given=written) == [
        "[False, True, True]",
        "[1, 2, 0, True, 1]",
    ]


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A `__main__` of the test's own."""
    made = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", made)
    return made


def defined(main: ModuleType, text: str) -> Any:
    exec(compile(text, "main.py", "exec"), vars(main))
    return vars(main)


def test_code_of_main_by_value_and_by_name(main: ModuleType) -> None:
    names = defined(main, "def f(x):\n return x + LATER\nLATER = 1")
    payload = as_received(pack(names["f"]))
    from everyorder.runtime.rpc.codec import unpack

    assert unpack(payload) is names["f"]
    first = names["f"]
    defined(main, "def f(x):\n return x + LATER + 1")
    found = unpack(payload)
    assert found not in (first, names["f"])
    assert found(1) == 2
    defined(main, "f = 3")
    assert unpack(payload)(1) == 2
    del main.f
    assert unpack(payload)(1) == 2


def test_classes_of_main(main: ModuleType) -> None:
    names = defined(
        main, "class K:\n def f(self): return 1\n @staticmethod\n def g(): return 2"
    )
    found = there([names["K"], names["K"]()])
    assert found[0] is names["K"]
    assert type(found[1]) is names["K"]


def made(text: str, file: str = "a.py") -> FunctionType:
    names: dict[str, Any] = {}
    exec(compile(text, file, "exec"), names)
    found: FunctionType = names["f"]
    return found


def test_a_digest_is_of_the_code() -> None:
    """Of what it does: not of its file, nor of the line."""
    one = "def f(x):\n return [y + 1 for y in x if y in {1, 'a'}]"
    assert digest(made(one)) == digest(made("\n\n" + one, "b.py"))
    for other in ("y + 2", "y - 1", "z + 1", "str(y + 1)"):
        assert digest(made(one)) != digest(made(one.replace("y + 1", other)))
    assert digest(made(one)) != digest(made(one.replace("'a'", "'b'")))
    assert digest(double) == digest(double)
    assert digest(int) != digest(str)
