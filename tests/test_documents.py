"""The documents are true: what README and the pages of `docs/` show is what one gets.

Each page is one test, which runs its programs from top to bottom; the rules are in
`tests/tools/documents.py`, whose `--write` renews outputs.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import everyorder
from everyorder.harness.engine.strategy import (
    DETERMINISM,
    ENDED,
    EQUAL_STATES,
    GUARANTEES,
    PAIRS,
    SCOPE,
)
from everyorder.harness.report.summary_table import LEGEND
from tests.tools.documents import (
    ROOT,
    Block,
    Output,
    ProgramFailed,
    blocks_of,
    comparable,
    pages,
    part_of,
    run_page,
    written,
)

DOCS = ROOT / "docs"
README_BYTES = 9_000
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in pages()
}


def has_torch(block: Block) -> bool:
    return block.notes.get("needs") == "torch"


def runs(name: str) -> bool:
    """Return True if a page has something to run."""
    blocks = blocks_of(TEXTS[name])
    return any(block.is_program or block.language == "console" for block in blocks)


def assert_true(outputs: list[Output]) -> None:
    for output in outputs:
        if output.is_session:
            same = comparable(output.printed) == comparable(output.stated)
            assert same, f"{output.block.text}\nprinted:\n{output.printed}"
        else:
            assert output.printed == output.stated


@pytest.mark.parametrize("name", [name for name in TEXTS if runs(name)])
def test_a_page_prints_what_it_says(name: str, tmp_path: Path) -> None:
    assert_true([*run_page(TEXTS[name], tmp_path, leave="torch")])


@pytest.mark.torch
@pytest.mark.parametrize(
    "name", [name for name in TEXTS if any(map(has_torch, blocks_of(TEXTS[name])))]
)
def test_a_page_on_torch_prints_what_it_says(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: see `make torch`")
    outputs = [*run_page(TEXTS[name], tmp_path, only="torch")]
    assert outputs
    assert_true(outputs)


def test_pages_need_only_what_this_file_tests() -> None:
    needed = {
        block.notes.get("needs") for text in TEXTS.values() for block in blocks_of(text)
    }
    assert needed == {None, "torch"}


def test_a_test_that_runs_a_program_names_the_page() -> None:
    for name, text in TEXTS.items():
        for block in blocks_of(text):
            if "run by" in block.notes:
                test = (ROOT / block.notes["run by"]).read_text(encoding="utf-8")
                assert Path(name).name in test


def test_the_readme_is_short() -> None:
    assert len(TEXTS["README.md"].encode()) <= README_BYTES


def test_the_readme_has_no_link_that_breaks_on_a_package_index() -> None:
    links = re.findall(r"\]\(([^)]+)\)", TEXTS["README.md"])
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_files_that_the_readme_names_are_there() -> None:
    named = re.findall(r"`(docs/[\w/.-]*)`|\b([A-Z]+\.md)\b", TEXTS["README.md"])
    assert len(named) > 5
    for path in map("".join, named):
        assert (ROOT / path).exists(), path


def test_the_navigation_of_the_site_has_each_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    entries = re.findall(r"^ +- (?:.+: )?(\S+\.md)$", text, re.MULTILINE)
    paths = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(entries) == sorted(paths)


def test_the_page_on_proofs_says_what_each_strategy_guarantees() -> None:
    """Reports only name the strategies."""
    row = re.compile(r"^\| `(\w+)(?::\w)?` \| .+ \| .+ \|$", re.MULTILINE)
    rows = row.findall(TEXTS["docs/proofs.md"])
    assert sorted(rows) == sorted({name.partition(":")[0] for name in GUARANTEES})


# The assumptions of a proof: texts that a file of the harness prints by `Caveat`, and
# the words of `docs/proofs.md` for each.
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
    "systems/audit.py": {"{each} is ignored": "`ignore=`"},
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


def assuming() -> Counter[str]:
    """How many `Caveat("assumed", ...)` each file of the harness has."""
    return Counter(
        str(file.relative_to(ROOT / "harness"))
        for file in (ROOT / "harness").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node).startswith("Caveat('assumed',")
    )


def test_the_page_on_proofs_names_every_assumption() -> None:
    assert {file: CALLS.get(file, len(ASSUMED[file])) for file in ASSUMED} == (
        assuming()
    ), "name a new assumption on the page, and here"
    said = " ".join(TEXTS["docs/proofs.md"].split())
    for file, named in ASSUMED.items():
        text = (ROOT / "harness" / file).read_text(encoding="utf-8")
        joined = re.sub(r'"\s+f?"', "", text)
        assert [each for each in named if each not in joined] == []
        assert [words for words in named.values() if words not in said] == []
    for always, named in ALWAYS.items():
        assert [each for each in named if each not in always] == []
        assert [words for words in named.values() if words not in said] == []


def test_the_page_on_proofs_says_what_each_exit_code_means() -> None:
    from everyorder.harness.cli.command import GATE

    row = re.compile(r"^\| ([\d, ]+) \| ", re.MULTILINE)
    rows = row.findall(TEXTS["docs/proofs.md"])
    assert [int(code) for codes in rows for code in codes.split(", ")] == [*GATE]


def test_the_reference_has_an_example_of_each_public_name() -> None:
    text = TEXTS["docs/reference/scenarios.md"]
    programs = "\n".join(
        block.text for block in blocks_of(text) if block.language == "python"
    )
    words = {*re.findall(r"\w+", programs)}
    modules = {"harness", "invariants", "runtime"}
    names = {*everyorder.__all__} - modules  # type: ignore[attr-defined]  # made on access
    assert names - words == set()
    described = re.findall(r"^(?:::: .+\.|### `)(\w+)`?$", text, re.MULTILINE)
    assert sorted(described) == sorted(names)


def test_a_look_hides_from_a_walk_what_the_page_on_proofs_says() -> None:
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
    lines = TEXTS["docs/proofs.md"].splitlines()
    (row,) = (line for line in lines if line.startswith("| `walk:s`"))
    assert "if no look hides it: a look after each operation warms all" in row
    assert explore(scenario, "walk:2").verdict == "holds"
    for strategy in ("stale", "histories:3", "graph", "auto"):
        assert explore(scenario, strategy).verdict == "order"


PAGE = """\
A file, a change of it, and a command:

```text
# a.txt
one
two
```

```diff
--- a.txt
-two
+three
```

```console
$ cat a.txt
# a.txt
one
three
$ false
```

```python
print("done in 3 ms")
```

```
done in 3 ms
```

```sh
exit 1
```
"""


def test_a_page_is_run_from_top_to_bottom(tmp_path: Path) -> None:
    outputs = [*run_page(PAGE, tmp_path)]
    printed = ["# a.txt\none\nthree\n", "", "done in 3 ms\n"]
    assert [each.printed for each in outputs] == printed
    assert [each.differs for each in outputs] == [False, False, False]


def test_a_page_without_blocks_prints_nothing(tmp_path: Path) -> None:
    assert [*run_page("# Only words\n", tmp_path)] == []


def test_what_differs_is_written(tmp_path: Path) -> None:
    """Times of a session are not compared, those of a program are."""
    stale = PAGE.replace("three\n$", "two\n$").replace("\ndone in 3 ms", "\ndone")
    assert stale != PAGE
    outputs = [*run_page(stale, tmp_path)]
    assert [each.differs for each in outputs] == [True, False, True]
    assert written(stale, outputs) == PAGE


def test_a_missing_output_is_added(tmp_path: Path) -> None:
    start = PAGE.index("\n```\ndone")
    short = PAGE[:start] + PAGE[PAGE.index("\n```sh") :]
    assert written(short, run_page(short, tmp_path)) == PAGE


def test_a_program_that_fails_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match="ZeroDivisionError"):
        [*run_page("```python\n1 / 0\n```\n", tmp_path)]


def test_a_diff_of_other_lines_is_refused(tmp_path: Path) -> None:
    page = PAGE.replace("-two", "-four")
    with pytest.raises(ValueError, match=r"a\.txt has these lines 0 times:\nfour"):
        [*run_page(page, tmp_path)]


def test_a_comment_with_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match="'need: torch'; use `needs: "):
        blocks_of("<!-- need: torch -->\n```python\n```\n")


def test_a_part_is_from_one_line_to_another() -> None:
    assert part_of("a\nb\nc\nd\n", "b ... c") == "b\nc\n"
    with pytest.raises(ValueError, match="no lines from 'b' to 'a'"):
        part_of("a\nb\n", "b ... a")


def test_times_shares_and_widths_are_not_compared() -> None:
    one, other = "a  (1.2 s)\n── 3 %\n\n", "a (91\nms)\n─ 12 %\n"
    assert comparable(one) == comparable(other) == ["a", "(TIME)", "─", "SHARE"]
