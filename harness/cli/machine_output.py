"""Results of `gate` for other programs: JSON, JUnit XML, and annotations of GitHub.

The formats are those of https://github.com/testmoapp/junitxml and
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands.

Rules:
- a file is replaced as a whole;
- characters that XML cannot hold are written as their escapes;
- an annotation is one line: percent signs and ends of lines are encoded.
"""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import mkstemp
from typing import Any
from xml.etree import ElementTree as ET

from everyorder.harness.cli.command import GATE, OK, writing_report
from everyorder.harness.cli.judgement import Judgement
from everyorder.harness.collection.tasks import Task
from everyorder.harness.exploration.paths import is_below

# Control characters that XML 1.0 excludes, halves of surrogate pairs included.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def judgement_data(judgement: Judgement) -> dict[str, Any]:
    """Return a judgement as JSON data."""
    return {
        "scenario": judgement.scenario,
        "exit_code": judgement.code,
        "meaning": GATE[judgement.code],
        "skipped": judgement.skipped,
        "compared": not judgement.uncompared,
        "text": judgement.text,
    }


def prepare_junit(file: Path) -> None:
    """Create the folder of a report: fail before the exploration, not after it.

    Raises:
        FileError: the file cannot be written.
    """
    with writing_report(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir():
            raise IsADirectoryError("it is a folder")


def write_junit(file: Path, judgements: Sequence[Judgement]) -> None:
    """Write one test case for each scenario.

    Raises:
        FileError: the file cannot be written.
    """
    suite = ET.Element(
        "testsuite",
        name="everyorder",
        tests=str(len(judgements)),
        failures=str(sum(each.code != OK for each in judgements)),
        errors="0",
        skipped=str(sum(each.skipped for each in judgements)),
    )
    for each in judgements:
        module, _, name = each.scenario.rpartition("/")
        case = ET.SubElement(
            suite, "testcase", classname=_xml(module.replace("/", ".")), name=_xml(name)
        )
        if each.skipped:
            ET.SubElement(case, "skipped", message=_xml(each.text))
        elif each.code != OK:
            failure = ET.SubElement(
                case, "failure", message=GATE[each.code], type=str(each.code)
            )
            failure.text = _xml(each.text)
    suites = ET.Element("testsuites")
    suites.append(suite)
    with writing_report(file):
        handle, name = mkstemp(prefix=f".{file.name}.", dir=file.parent)
        pending = Path(name)
        try:
            with os.fdopen(handle, "wb") as opened:
                ET.ElementTree(suites).write(opened, "utf-8", xml_declaration=True)
            pending.chmod(0o644)
            os.replace(pending, file)
        finally:
            pending.unlink(missing_ok=True)


def _xml(text: str) -> str:
    return _NOT_XML.sub(lambda match: ascii(match[0])[1:-1], text)


def wants_annotations() -> bool:
    """Return True in a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotation_lines(
    judgements: Iterable[Judgement], tasks: Sequence[Task], root: Path
) -> list[str]:
    """Return a command of GitHub for each failure, at the line of its scenario.

    Files are relative to the folder that GitHub has checked out.
    """
    base = os.environ.get("GITHUB_WORKSPACE") or str(root)
    lines = []
    for each in judgements:
        if each.code == OK:
            continue
        title = f"{each.scenario}: {GATE[each.code]}"
        fields = [f"title={_encoded(title, in_field=True)}"]
        source, line = _place(each, tasks)
        if line:
            fields.insert(0, f"line={line}")
        if source:
            file = os.path.relpath(root / source, base)
            fields.insert(0, f"file={_encoded(file, in_field=True)}")
        lines.append(f"::error {','.join(fields)}::{_encoded(each.text)}")
    return lines


def _place(judgement: Judgement, tasks: Sequence[Task]) -> tuple[str, str]:
    """Return file and line of a judgement, as far as they are known."""
    source, _, line = judgement.where.partition(":")
    if line.isdigit():
        return source, line
    for task in tasks:
        names = (task.path, task.node)
        if judgement.scenario in names or is_below(judgement.scenario, task.path):
            return task.subject.source, "" if task.line is None else str(task.line)
    return source, ""


def _encoded(text: str, *, in_field: bool = False) -> str:
    special = "%\r\n" + (":," if in_field else "")
    return "".join(f"%{ord(c):02X}" if c in special else c for c in text)
