r"""Read and write golden texts: expected outputs of tests, in files of many cases.

    [case swap]
    def f(a: int, b: int):
        return b, a
    [out]
    f(int a, int b) -> (int, int)

    [case sum]
    ...

A case has a name, an input and an output. The input is the text below the first header,
the output is the text below `[out]`. A case may lack `[out]`: a test that compares its
output then fails.

A text is complete lines: each ends with a line break. The empty line before the next
`[case ...]` separates the cases and belongs to no text. A line that looks like a
header, begins with a backslash or has unprintable characters is written as a backslash
and the line with the escapes of Python's string literals, `\[out]` for example.
Therefore every list of cases has one spelling, which `parse` reads back exactly; any
other spelling is refused.

A test module creates one `Golden` for its cases; their files are the unit of review.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from pathlib import Path

HEADER = re.compile(r"\[(?:case (.+)|out)\]")


@dataclass(frozen=True)
class Case:
    """A case: `line` is that of `[out]`, or of `[case ...]` if the output is None."""

    name: str
    input: str
    output: str | None = None
    file: Path = Path()
    line: int = 0

    @property
    def place(self) -> str:
        """The file and the line, as in a traceback."""
        here = Path.cwd()
        is_below = self.file.is_relative_to(here)
        file = self.file.relative_to(here) if is_below else self.file
        return f"{file}:{self.line}"


def document(cases: Iterable[Case]) -> str:
    """Return the text of a file with these cases.

    Raises:
        ValueError: a name is not one printable line, or a text ends within a line.
    """
    return "\n".join(map(_written, cases))


def _written(case: Case) -> str:
    if not (case.name and case.name.isprintable()):
        raise ValueError(f"invalid name of a case {case.name!r}: expected one line")
    text = f"[case {case.name}]\n{_escaped(case.input)}"
    return text if case.output is None else f"{text}[out]\n{_escaped(case.output)}"


def _escaped(text: str) -> str:
    if not text.endswith("\n") and text:
        raise ValueError(f"invalid golden text {text!r}: expected complete lines")
    return "".join(f"{_escaped_line(line)}\n" for line in text.split("\n")[:-1])


def _escaped_line(line: str) -> str:
    if line.isprintable() and line[:1] != "\\" and not HEADER.fullmatch(line):
        return line
    return "\\" + line.encode("unicode_escape").decode("ascii")


def _unescaped(lines: list[str]) -> str:
    # An invalid escape becomes something else than it was, which `parse` then reports.
    return "".join(
        line[1:].encode("ascii", "replace").decode("unicode_escape", "replace") + "\n"
        if line.startswith("\\")
        else f"{line}\n"
        for line in lines
    )


def parse(text: str, file: Path) -> list[Case]:
    """Return the cases in the text of a file.

    Raises:
        ValueError: `document` would write these cases in another way; the message has
            the first line that differs.
    """
    lines = text.split("\n")
    headers = [at for at, line in enumerate(lines) if HEADER.fullmatch(line)]
    cases: list[Case] = []
    for first, end in pairwise([*headers, len(lines)]):
        if lines[first] == "[out]" and (not cases or cases[-1].output is not None):
            raise ValueError(f"{file}:{first + 1}: `[out]` does not follow an input")
        # A case ends with the separator, the last one with the end of the file.
        is_last = end == len(lines) or lines[end] != "[out]"
        section = _unescaped(lines[first + 1 : end - is_last])
        if lines[first] == "[out]":
            cases[-1] = replace(cases[-1], output=section, line=first + 1)
        else:
            name = lines[first].removeprefix("[case ").removesuffix("]")
            cases.append(Case(name, section, None, file, first + 1))
    canonical = document(cases).split("\n")
    for number, (line, expected) in enumerate(zip_longest(lines, canonical), 1):
        if line != expected:
            raise ValueError(
                f"{file}:{number}: invalid golden text {line!r}: expected {expected!r}"
            )
    return cases


def read(file: Path) -> list[Case]:
    """Return the cases of a file; a file that does not exist has none."""
    # Bytes, because text files translate `\r`.
    return parse(file.read_bytes().decode(), file) if file.exists() else []


class Golden:
    """The cases of one file, or of all files `*.test` of a folder.

    Args:
        path: the file or folder.
        module: the module that writes the outputs when it is run with `--write`.

    Raises:
        ValueError: two cases have one name, or a file is invalid.
    """

    def __init__(self, path: Path, module: str) -> None:
        self._path = path
        self._command = f"python -m {module} --write"
        files = sorted(path.glob("*.test")) if path.is_dir() else [path]
        self._files = {file: read(file) for file in files}
        self.cases: dict[str, Case] = {}
        for case in (case for cases in self._files.values() for case in cases):
            first = self.cases.setdefault(case.name, case)
            if first is not case:
                raise ValueError(
                    f"{case.place}: duplicate case `{case.name}`: rename or delete it; "
                    f"the first one is at {first.place}"
                )

    def check(self, name: str, output: str) -> None:
        """Raise AssertionError if a case has another output, with the difference."""
        __tracebackhide__ = True
        case = self.cases.get(name)
        if case is None:
            raise AssertionError(
                f"no case `{name}` in {self._path}: run `{self._command}`"
            )
        if case.output is None:
            raise AssertionError(
                f"{case.place}: case `{name}` has no `[out]`: run `{self._command}`"
            )
        if output != case.output:
            # Without the line breaks, so that a missing one at the end is a difference.
            texts = case.output.split("\n"), output.split("\n")
            diff = difflib.unified_diff(*texts, "expected", "actual", lineterm="")
            raise AssertionError(
                f"{case.place}: case `{name}` has another output:\n"
                + "\n".join(diff)
                + f"\nIf the change is right, accept it: run `{self._command}`"
            )

    def check_inputs(self, inputs: Mapping[str, str]) -> None:
        """Raise AssertionError unless the cases are these inputs, by name."""
        __tracebackhide__ = True
        missing = inputs.keys() - self.cases.keys()
        problems = [f"no case `{name}` in {self._path}" for name in sorted(missing)]
        for name, case in self.cases.items():
            if name not in inputs:
                problems.append(f"{case.place}: no test uses case `{name}`")
            elif case.input != inputs[name]:
                problems.append(f"{case.place}: case `{name}` has another input")
        if problems:
            raise AssertionError("\n".join([*problems, f"Run `{self._command}`"]))

    def write(
        self,
        output: Callable[[Case], str | None],
        inputs: Mapping[str, str] | None = None,
    ) -> None:
        """Write the files with new outputs.

        Args:
            output: returns the output of a case, or None for a case without output.
            inputs: the inputs of all cases by name, in the order of the file; by
                default those that are in the files. Only for a single file.
        """
        assert inputs is None or len(self._files) == 1, "a new case needs its file"
        for file, cases in self._files.items():
            if inputs is not None:
                cases = [Case(name, text) for name, text in inputs.items()]
            text = document(replace(case, output=output(case)) for case in cases)
            file.write_bytes(text.encode())
