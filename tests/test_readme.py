"""The README is true: what it shows is what one gets.

The example is cut out of the README, written to a file, and run; times are left out of
the comparison, because they are the machine's.
"""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from everyorder.harness.engine.strategy import (
    DETERMINISM,
    ENDED,
    EQUAL_STATES,
    GUARANTEES,
    PAIRS,
    SCOPE,
)
from everyorder.harness.report.summary_table import LEGEND

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
BLOCKS = [(match[1], match[2]) for match in BLOCK.finditer(README)]
EXAMPLE = next(text for kind, text in BLOCKS if "scale_anywhere = Scenario" in text)


def normal(text: str) -> list[str]:
    """Lines without times, and without the spaces that their widths move."""
    text = re.sub(r"\d+(\.\d+)? m?s\b", "TIME", text)
    text = re.sub(r"─+", "─", text)
    lines = [re.sub(r" {2,}", " ", line).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def everyorder(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "everyorder", *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not ran.stderr, ran.stderr
    return ran.stdout


def shown(command: str) -> str:
    """What the README says that a command prints."""
    for kind, text in BLOCKS:
        first, _, rest = text.partition("\n")
        if kind == "console" and first == f"$ {command}":
            return rest
    raise AssertionError(f"the README does not show {command!r}")


def example(folder: Path, text: str = EXAMPLE) -> Path:
    file = folder / "tests" / "test_scale.py"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    return file


def test_the_example_prints_what_the_readme_says(tmp_path: Path) -> None:
    example(tmp_path)
    command = "everyorder run tests/test_scale.py"
    printed = everyorder(tmp_path, *command.split()[1:])
    assert normal(printed) == normal(shown(command))


def test_the_expect_file_ends_as_the_readme_says(tmp_path: Path) -> None:
    example(tmp_path)
    everyorder(tmp_path, "review", "--accept", "all", "tests/test_scale.py")
    file = tmp_path / "expect" / "test_scale" / "scale_anywhere.txt"
    section = next(text for _, text in BLOCKS if text.startswith("== {1 2 3} ==\n"))
    assert file.read_text(encoding="utf-8").endswith("\n\n" + section)


def test_the_readme_says_what_each_strategy_guarantees() -> None:
    """Expect files only name the strategies."""
    rows = re.findall(r"^\| `(\w+)(?::\w)?` \| .+ \| .+ \|$", README, re.MULTILINE)
    assert sorted(rows) == sorted({name.partition(":")[0] for name in GUARANTEES})


# The assumptions of a proof: texts that a file of the harness prints by `Caveat`, and
# the words of the README for each.
ASSUMED = {
    "engine/parts.py": {
        "no operation looks at the exact type of": "no look at the exact type of a",
        "changed nothing and broke no law at any": "no write, broken law or order read",
        "the order of {path} is never read": "an unread order of a dict, OrderedDict",
    },
    "engine/reference.py": {
        "create makes a fresh system after": "`create` makes a fresh system at any",
    },
    "engine/symmetry.py": {"are interchangeable, as declared": "`symmetric=`"},
    "state/c_call_audit.py": {
        "no `is` distinguishes two equal values": "no `is` between equal values",
        '_CALLS = "calls "': "calls of impure C functions, also in branches",
        "C functions that hide state were not audited": "that could not be listed",
    },
    "state/heap.py": {
        "the order of a set of 2 or more": "an unread order of a dict, OrderedDict or",
        "how often a cache was hit": "how often a cache was hit",
        "the frames of a traceback": "the frames of a traceback",
        "who called a frame": "the caller of a frame",
        "{} is ignored": "`ignore=`",
    },
    "state/unique_values.py": {
        "differs in every fresh system": "values that are new in each fresh system",
    },
    "systems/isolation.py": {'Caveat("assumed", "")': ""},  # names a class, no text
    "systems/outcomes.py": {"what an error carries": "objects that an error carries"},
    "systems/state_reader.py": {
        "the order of what {use.text} answers": "`unordered=`",
        "the order of observed lines does not count": "`unordered=`",
        "fingerprint= returns the whole state": "`fingerprint=`",
        "the undo handles have no state": "`fingerprint=`",
    },
}
# The number of `Caveat` calls of a file, if one call has several texts.
CALLS = {"engine/parts.py": 1, "state/c_call_audit.py": 2, "state/heap.py": 1}
# Parts of the texts that every proof has, or every one with `ends=` or `ordered=`.
ALWAYS = {
    DETERMINISM: {"the system is deterministic": "the system is deterministic"},
    SCOPE: {
        "one thread, one process": "one thread, one process",
        "undo handles are kept, and closed": "undo handles that are kept and closed",
    },
    ENDED: {"are dropped, and never closed": "or dropped when an operation ends"},
    PAIRS: {"by the order of the pairs": "the order of the pairs in `ordered=`"},
    EQUAL_STATES: {
        "by id": "the address of an object",
        "the hash of an address": "the hash of an object",
        "the order of a set": "an unread order of a dict, OrderedDict or set",
        "`is` between equal values": "an `is` between equal values in the standard",
        "a clock": "(clock, files,",
        "the hash seed": "the hash seed",
    },
    LEGEND: {
        "ids": "the address of an object",
        "`is` between equal values": "an `is` between equal values in the standard",
        "orders of sets": "an unread order of a dict, OrderedDict or set",
        "hashes that changed": "a key whose hash has changed",
        "clocks": "(clock, files,",
        "caches of the standard library": "caches of the standard library that only",
    },
}


def paragraph(title: str) -> str:
    """The words of a chapter of the README, in one line."""
    _, _, rest = README.partition(f"## {title}\n")
    return " ".join(rest.partition("\n## ")[0].split())


def assuming() -> Counter[str]:
    """How many `Caveat("assumed", ...)` each file of the harness has."""
    return Counter(
        str(file.relative_to(ROOT / "harness"))
        for file in (ROOT / "harness").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node).startswith("Caveat('assumed',")
    )


def test_the_readme_names_every_assumption_of_a_proof() -> None:
    assert {file: CALLS.get(file, len(ASSUMED[file])) for file in ASSUMED} == (
        assuming()
    ), "name a new assumption in the README, and here"
    said = paragraph("What a verdict means")
    for file, named in ASSUMED.items():
        text = (ROOT / "harness" / file).read_text(encoding="utf-8")
        joined = re.sub(r'"\s+f?"', "", text)
        assert [each for each in named if each not in joined] == []
        assert [words for words in named.values() if words not in said] == []
    for always, named in ALWAYS.items():
        assert [each for each in named if each not in always] == []
        assert [words for words in named.values() if words not in said] == []


def test_the_failure_is_what_the_readme_says(tmp_path: Path) -> None:
    broken = EXAMPLE.replace('"CompositeImplicitAutograd"', '"CPU"')
    assert broken != EXAMPLE
    example(tmp_path, broken)
    printed = normal(everyorder(tmp_path, "run", "tests/test_scale.py"))
    said = next(text for _, text in BLOCKS if "scale_anywhere: depends" in text)
    lines = normal(said)
    start = printed.index(lines[0])
    assert printed[start : start + len(lines)] == lines


def test_the_stale_cache_is_found_as_the_readme_says() -> None:
    from everyorder.harness import explore
    from everyorder.harness.report import render
    from tests.examples.plugins import StalePlugins
    from tests.examples.test_any_registry import scenario

    printed = normal(render(explore(scenario(StalePlugins))))
    lines = normal(next(text for _, text in BLOCKS if "plugins: depends" in text))
    assert printed[: len(lines)] == lines


def test_a_look_hides_from_a_walk_what_the_readme_says() -> None:
    """Where an observation refreshes a cache, a walk shows less than all faults."""
    from everyorder.harness import Scenario, explore, steps, use

    class Refreshed:
        def __init__(self) -> None:
            self.names: set[str] = set()
            self.found: dict[str, bool] = {}

        def add(self, name: str) -> Callable[[], None]:
            self.names.add(name)
            return lambda: self.names.discard(name)

        def find(self, name: str) -> bool:
            return self.found.setdefault(name, name in self.names)

        def shown(self) -> str:
            self.found.clear()
            return " ".join(sorted(self.names))

    scenario = Scenario(
        *steps("add", "ab", Refreshed.add),
        uses=[use('find("a")', lambda registry: registry.find("a"))],
        create=Refreshed,
        observe=Refreshed.shown,
    )
    (row,) = (line for line in README.splitlines() if line.startswith("| `walk:s`"))
    assert "if no look hides it: a look after each operation warms all" in row
    assert explore(scenario, "walk:2").verdict == "holds"
    for strategy in ("stale", "histories:3", "graph", "auto"):
        assert explore(scenario, strategy).verdict == "order"


def test_a_registry_that_lists_its_names_is_explored_as_the_readme_says() -> None:
    from everyorder.harness import Scenario, explore

    class Plugins(dict[str, object]):
        def add(self, name: str, plugin: object) -> Callable[[], object]:
            self[name] = plugin
            return lambda: self.pop(name)

        def find(self, name: str) -> object:
            return self.get(name)

        def names(self) -> list[str]:
            return list(self)

    text = next(text for _, text in BLOCKS if "create=Plugins" in text)
    made = {"Plugins": Plugins, "as_json": "a plugin", "as_text": "another"}
    exec(compile(text, "README.md", "exec"), made)
    scenario = made["plugins"]
    assert isinstance(scenario, Scenario)
    assert explore(scenario).passed


@pytest.mark.torch
def test_torch_prints_what_the_readme_says(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: see `make torch`")
    command = "everyorder run --system torch"
    printed = normal(everyorder(tmp_path, *command.split()[1:]))
    lines = normal(shown(command))
    start = printed.index(lines[0])
    assert printed[start : start + len(lines)] == lines


def test_the_dispatcher_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = next(text for _, text in BLOCKS if "ops.demo.add" in text)
    exec(compile(text, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out == "tensor([4., 6.])\n"


# Something that only the block with that program says.
PROGRAMS = (
    "w.sub_(w.grad",
    '@custom_op("demo::clip"',
    "class Log(TorchDispatchMode)",
    "FlopCounterMode() as counter",
    "asyncio.run(main())",
    "jit.load(file)",
    "rpc.local_workers(",
)


@pytest.mark.parametrize("said", PROGRAMS)
def test_a_program_prints_what_the_readme_says(said: str, tmp_path: Path) -> None:
    at = next(i for i, (_, text) in enumerate(BLOCKS) if said in text)
    file = tmp_path / "program.py"
    file.write_text(BLOCKS[at][1], encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, file],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == (BLOCKS[at + 1][1], "")
