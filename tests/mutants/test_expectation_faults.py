"""Planted faults of the expect files: each is noticed by the test that is named.

A fault replaces one piece of a function. The code of the function itself is exchanged,
so that every module that has imported it has the fault, too.
"""

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from everyorder.harness.cli import changes
from everyorder.harness.expectations import (
    Comparison,
    document,
    edits,
    file_format,
    inline,
    names,
    writing,
)
from tests.cli import test_review as review_tests
from tests.expectations import test_compare as compare_tests
from tests.expectations import test_document as document_tests
from tests.expectations import test_file_format as format_tests
from tests.expectations import test_inline as inline_tests
from tests.expectations import test_store as store_tests
from tests.scenario_api import test_normalisers as normaliser_tests

# The function of this name hides the module.
compare = sys.modules[Comparison.__module__]

Killer = Callable[[Path, pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Fault:
    """A replaced piece of a function, and the test that notices it."""

    module: ModuleType
    function: str
    old: str
    new: str
    killer: Killer


def on_disk(test: Callable[..., None], **values: Any) -> Killer:
    """A test that needs a folder, and maybe the record of renames."""

    def run(folder: Path, patch: pytest.MonkeyPatch) -> None:
        patch.delenv("CI", raising=False)
        wanted = test.__code__.co_varnames[: test.__code__.co_argcount]
        fixtures: dict[str, Callable[[], Any]] = {
            "tmp_path": lambda: folder,
            "monkeypatch": lambda: patch,
            "renames": lambda: store_tests.Renames(patch),
        }
        made = {name: fixtures[name]() for name in wanted if name in fixtures}
        test(**made, **values)

    return run


INTERRUPTED = on_disk(
    store_tests.test_an_accept_that_is_interrupted_says_how_far_it_came,
    error=KeyboardInterrupt(),
    kind="AcceptInterrupted",
    text=f"interrupted; 1 of 3 files written: expect/{store_tests.THREE[0]}.txt. "
    "Accept again to write the rest, or restore the files from version control.",
)

FAULTS = {
    "a temporary named after the process": Fault(
        writing,
        "_temporary",
        "secrets.token_hex(8)",
        'format(os.getpid(), "016x")',
        on_disk(store_tests.test_temporaries_have_random_names),
    ),
    "a text that is not forced to the disk": Fault(
        writing,
        "_write",
        "os.fsync(file)",
        "None",
        on_disk(
            store_tests.test_texts_are_on_the_disk_before_a_rename_and_folders_after
        ),
    ),
    "folders that are not forced to the disk": Fault(
        writing,
        "_sync",
        "os.fsync(opened)",
        "None",
        on_disk(
            store_tests.test_texts_are_on_the_disk_before_a_rename_and_folders_after
        ),
    ),
    "renames that are not counted": Fault(
        writing,
        "replace_files",
        "not temporaries.get(path, path).exists()",
        "False",
        INTERRUPTED,
    ),
    "a killed accept that is not reported": Fault(
        writing,
        "interrupted",
        "len(left) == count",
        "True",
        on_disk(store_tests.test_an_accept_that_was_killed_is_told_by_the_next_run),
    ),
    "new permissions": Fault(
        writing,
        "_write",
        "like.stat()",
        "path.stat()",
        on_disk(store_tests.test_permissions_stay),
    ),
    "names that differ in case": Fault(
        names,
        "folded",
        ".casefold()",
        "",
        on_disk(
            store_tests.test_names_that_some_system_confuses, old="a/Pair", new="a/pair"
        ),
    ),
    "names that differ in composition": Fault(
        names,
        "folded",
        "unicodedata.normalize('NFC', unicodedata.normalize('NFC', path).casefold())",
        "path.casefold()",
        on_disk(
            store_tests.test_names_that_some_system_confuses,
            old="a/\u00e9",
            new="a/e\u0301",
        ),
    ),
    "devices with a suffix": Fault(
        names,
        "_problem",
        "part.partition('.')[0].rstrip()",
        "part",
        on_disk(
            store_tests.test_names_that_some_system_does_not_take,
            path="Com1.x/a",
            part="Com1.x",
            problem="is the name of a device on Windows",
            better="Com1_.x",
        ),
    ),
    "observations that pass for expectations": Fault(
        file_format,
        "_LineCursor._refuse_title",
        "line.startswith(SAVED_TITLE)",
        "False",
        on_disk(store_tests.test_observations_that_wait_are_never_read_as_expectations),
    ),
    "an old format that is not noticed": Fault(
        document,
        "Document.is_old",
        "self.format != FORMAT",
        "False",
        on_disk(format_tests.test_a_file_of_format_2_is_read_and_is_old),
    ),
    "stale entries of a partial run": Fault(
        compare,
        "compare",
        "not partial and key",
        "key",
        on_disk(compare_tests.test_a_run_that_may_reach_less_reports_no_stale_entries),
    ),
    "a strategy in the file": Fault(
        document,
        "document_of",
        "report.uses",
        "(*report.uses, report.exploration.strategy)",
        on_disk(
            document_tests.test_another_strategy_or_engine_that_observes_the_same_writes_the_same
        ),
    ),
    "edits that depend on the lines around them": Fault(
        edits,
        "edits_of",
        "set()",
        "{('', '\\n'.join(lines))}",
        on_disk(review_tests.test_one_changed_separator_is_one_decision),
    ),
    "decisions by lines": Fault(
        changes,
        "_Groups.add",
        "like or edits or lines",
        "like or lines",
        on_disk(review_tests.test_one_changed_separator_is_one_decision),
    ),
    "a literal that was changed meanwhile": Fault(
        inline,
        "_literal",
        "value.value != edit.before",
        "False",
        on_disk(
            inline_tests.test_arguments_that_are_not_rewritten,
            source="x = Scenario(expect='new')\n",
            reason="line 1 has been changed since it was loaded",
        ),
    ),
    "a literal of two scenarios": Fault(
        inline,
        "rewritten",
        "other[1] != replaced",
        "False",
        on_disk(inline_tests.test_one_argument_of_two_scenarios),
    ),
    "line ends": Fault(
        inline,
        "_line_end",
        "b'\\r\\n' in data",
        "False",
        on_disk(inline_tests.test_line_ends_stay),
    ),
    "a chain that is not named": Fault(
        document,
        "document_of",
        "report.normalisers",
        "()",
        on_disk(normaliser_tests.test_a_chain_is_applied_in_its_order),
    ),
    "a cause that is not named": Fault(
        compare,
        "Comparison.cause",
        "'normalisers' not in self.fields",
        "True",
        on_disk(normaliser_tests.test_another_chain_is_named_as_the_cause),
    ),
}


def definition(tree: ast.Module, name: str) -> ast.FunctionDef:
    """Return the definition of a function or of a method."""
    body: list[ast.stmt] = tree.body
    *classes, function = name.split(".")
    for each in classes:
        [owner] = [n for n in body if isinstance(n, ast.ClassDef) and n.name == each]
        body = owner.body
    [found] = [
        node
        for node in body
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    return found


def code_with(fault: Fault) -> CodeType:
    """Return the code of the function with the fault."""
    assert fault.module.__file__ is not None, "it is a file"
    tree = ast.parse(Path(fault.module.__file__).read_text(encoding="utf-8"))
    function = definition(tree, fault.function)
    function.decorator_list = []
    text = ast.unparse(function)
    assert text.count(fault.old) == 1, f"planted in {text}"
    namespace: dict[str, Any] = {}
    source = f"from __future__ import annotations\n{text.replace(fault.old, fault.new)}"
    exec(compile(source, fault.module.__file__, "exec"), namespace)
    faulty: FunctionType = namespace[function.name]
    return faulty.__code__


def function_of(fault: Fault) -> FunctionType:
    found: Any = fault.module
    for part in fault.function.split("."):
        found = vars(found)[part]
    function = found.fget if isinstance(found, property) else found
    assert isinstance(function, FunctionType), "a function or method"
    return function


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_noticed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = FAULTS[name]
    sound, faulty = tmp_path / "sound", tmp_path / "faulty"
    sound.mkdir()
    faulty.mkdir()
    with monkeypatch.context() as patch:
        fault.killer(sound, patch)
    with monkeypatch.context() as patch:
        patch.setattr(function_of(fault), "__code__", code_with(fault))
        with pytest.raises((Exception, pytest.fail.Exception)):
            fault.killer(faulty, patch)
