"""Results for other programs: JSON, JUnit XML, and annotations of GitHub.

The formats are those of https://github.com/testmoapp/junitxml and
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands.

Rules:
- a file is replaced as a whole;
- characters that XML cannot hold are written as their escapes;
- an annotation is one line: percent signs and ends of lines are encoded.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import click

from everyorder.harness.base.errors import FileError
from everyorder.harness.cli.command import GATE, OK
from everyorder.harness.cli.judgement import Judgement
from everyorder.harness.collection.tasks import Task
from everyorder.harness.exploration.uncollected import assigned_lines

# Control characters that XML 1.0 excludes, halves of surrogate pairs included.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def print_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


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
    pending = file.with_name(f"{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        ET.ElementTree(suites).write(pending, encoding="utf-8", xml_declaration=True)
        os.replace(pending, file)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            code="CannotWriteReport", source=str(file), reason=reason
        ) from None


def _xml(text: str) -> str:
    return _NOT_XML.sub(lambda match: ascii(match[0])[1:-1], text)


def wants_annotations() -> bool:
    """Return True in a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotation_lines(
    judgements: Iterable[Judgement], tasks: Iterable[Task]
) -> list[str]:
    """Return a command of GitHub for each failure, at the line of its scenario."""
    by_path = {task.path: task for task in tasks}
    lines = []
    for each in judgements:
        if each.code == OK:
            continue
        title = f"{each.scenario}: {GATE[each.code]}"
        fields = [f"title={_encoded(title, in_field=True)}"]
        task = by_path.get(each.scenario)
        if task is not None:
            fields.insert(0, f"file={_encoded(task.subject.source, in_field=True)}")
            name = task.node.partition("::")[2]
            line = None if task.file is None else assigned_lines(task.file).get(name)
            if line is not None:
                fields.insert(1, f"line={line}")
        lines.append(f"::error {','.join(fields)}::{_encoded(each.text)}")
    return lines


def _encoded(text: str, *, in_field: bool = False) -> str:
    special = "%\r\n" + (":," if in_field else "")
    return "".join(f"%{ord(c):02X}" if c in special else c for c in text)
