"""Run the programs of the documents, and compare what they print with the pages.

    python -m tests.tools.documents                     list the outputs that differ
    python -m tests.tools.documents --write             write them into the pages
    python -m tests.tools.documents docs/tutorial.md    consider this page only

The pages are README.md and those of `docs/`. A page is read from top to bottom, with
one empty folder for all of its blocks:

- the first line `# NAME` of a block, where NAME is a path with a suffix, makes the
  block a file of that folder; a later block with the same name replaces it;
- a `diff` block that begins with `--- NAME` changes a file of that folder;
- another `python` block is a program, which must succeed; a block without a language
  that follows it directly is its output, without which it must print nothing;
- a `console` block has commands, each after `$ `, with their outputs; a command that
  fails is not an error, because most of them show failures;
- any other block is only shown: `sh` for commands that are not run.

A comment in the line before a block changes that:

    <!-- needs: torch -->            the block is run only if this module is installed
    <!-- part: FIRST ... LAST -->    of each output, the lines from one that contains
                                     FIRST to the next one that contains LAST
    <!-- run by: tests/FILE.py -->   another test runs the program

Times and percentages of a session belong to the machine: they are not compared, and an
output that differs in nothing else is not written.
"""

import os
import re
import stat
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]

# A comment, if there is one, a fence with its language, and the text.
_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_FILE = re.compile(r"# ([\w./-]+\.\w+)\n")
_COMMAND = "$ "
_NOTES = ("needs", "part", "run by")
_PERIOD = re.compile(r"\b(\d+(\.\d+)? ?m?s|\d+:\d\d)\b")
_SHARE = re.compile(r"\b\d+ %")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language and text, and where the text begins in the page.

    `notes` are those of the comment before it, by name. `is_output` is True for the
    output of the program before it.
    """

    language: str
    text: str
    start: int
    notes: dict[str, str]
    is_output: bool = False

    @property
    def end(self) -> int:
        """Return where the text ends in the page."""
        return self.start + len(self.text)

    @property
    def file(self) -> str:
        """Return the path of the file that the block is, or ""."""
        match = _FILE.match(self.text)
        return match[1] if match else ""

    @property
    def is_program(self) -> bool:
        """Return True if the block is a program that this module runs."""
        return (
            self.language == "python" and not self.file and "run by" not in self.notes
        )

    @property
    def can_run(self) -> bool:
        """Return True if the module that the block needs is installed, or none is."""
        needed = self.notes.get("needs")
        return needed is None or find_spec(needed) is not None


@dataclass(frozen=True, slots=True)
class Output:
    """What a block printed: the text that the page has, and where, and the printed one.

    `is_session` is True for commands, whose times and widths are not compared.
    """

    block: Block
    stated: str
    printed: str
    start: int
    is_session: bool

    @property
    def differs(self) -> bool:
        """Return True if the page does not have what was printed."""
        if self.is_session:
            return comparable(self.stated) != comparable(self.printed)
        return self.stated != self.printed


class ProgramFailed(Exception):
    """A program of a page failed; the text has its output."""


def pages() -> list[Path]:
    """Return the documents whose programs are run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def comparable(text: str) -> list[str]:
    """Return the words without times and shares, whose widths move all line breaks."""
    text = " ".join(text.split())
    text = _SHARE.sub("SHARE", _PERIOD.sub("TIME", text))
    return re.sub(r"─+", "─", text).split()


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page.

    Raises:
        ValueError: a comment before a block has an unknown name.
    """
    blocks: list[Block] = []
    end = 0
    for match in _BLOCK.finditer(page):
        notes = dict(_notes(match["note"])) if match["note"] else {}
        directly = not page[end : match.start()].strip()
        follows = bool(blocks) and blocks[-1].is_program and directly
        is_output = follows and not match["language"]
        start = match.start("text")
        blocks.append(Block(match["language"], match["text"], start, notes, is_output))
        end = match.end()
    return blocks


def _notes(text: str) -> Iterator[tuple[str, str]]:
    for each in text.split("; "):
        name, _, value = each.partition(": ")
        if name not in _NOTES or not value:
            known = ", ".join(f"`{note}: ...`" for note in _NOTES)
            raise ValueError(f"unknown comment before a block: {each!r}; use {known}")
        yield name, value


def run_page(
    page: str, folder: Path, *, only: str = "", leave: str = ""
) -> Iterator[Output]:
    """Write the files of a page into a folder, run the rest, and yield the outputs.

    Blocks that need a module that is missing are left out. `only` is a module: all
    blocks that do not need it are left out. `leave` is a module, too: those that do.

    Raises:
        ProgramFailed: a program ended with an error.
    """
    blocks = blocks_of(page)
    work, commands = folder / "page", folder / "bin"
    work.mkdir()
    _write_commands(commands)
    for block, following in zip(blocks, [*blocks, None][1:], strict=True):
        if block.language == "diff":
            _apply(block.text, work)
        elif block.file:
            path = work / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif not _is_chosen(block, only=only, leave=leave):
            continue
        elif block.is_program:
            printed = _run_program(block, work, commands)
            if following is not None and following.is_output:
                stated, start = following.text, following.start
            else:
                stated, start = "", block.end
            yield Output(block, stated, printed, start, is_session=False)
        elif block.language == "console":
            yield from _run_session(block, work, commands)


def _is_chosen(block: Block, *, only: str, leave: str) -> bool:
    needed = block.notes.get("needs", "")
    if only and needed != only:
        return False
    return block.can_run and not (leave and needed == leave)


def _apply(diff: str, work: Path) -> None:
    """Change the file that a diff names.

    Raises:
        ValueError: the lines to replace are not in the file, or are there twice.
    """
    name, *lines = diff.splitlines(keepends=True)
    path = work / name.removeprefix("--- ").strip()
    text = path.read_text(encoding="utf-8")
    old = "".join(line[1:] or "\n" for line in lines if line[0] != "+")
    new = "".join(line[1:] or "\n" for line in lines if line[0] != "-")
    if text.count(old) != 1:
        raise ValueError(f"{path.name} has these lines {text.count(old)} times:\n{old}")
    path.write_text(text.replace(old, new), encoding="utf-8")


def _run_program(block: Block, work: Path, commands: Path) -> str:
    program = work / "_program.py"
    program.write_text(block.text, encoding="utf-8")
    ran = _run([sys.executable, program.name], work, commands)
    program.unlink()
    if ran.returncode:
        raise ProgramFailed(f"{block.text}\n{ran.stdout}")
    return ran.stdout


def _run_session(block: Block, work: Path, commands: Path) -> Iterator[Output]:
    """Yield the output of each command of a session."""
    at = block.start
    lines = block.text.splitlines(keepends=True)
    if not lines or not lines[0].startswith(_COMMAND):
        raise ValueError(f"a console block begins with `$ `: {block.text!r}")
    while lines:
        command = lines.pop(0)
        at += len(command)
        stated = ""
        while lines and not lines[0].startswith(_COMMAND):
            stated += lines.pop(0)
        words = ["bash", "-c", command.removeprefix(_COMMAND)]
        printed = _run(words, work, commands).stdout
        printed = "".join(
            f"{line.rstrip()}\n" for line in printed.rstrip().splitlines()
        )
        if "part" in block.notes:
            printed = part_of(printed, block.notes["part"])
        yield Output(block, stated, printed, at, is_session=True)
        at += len(stated)


def part_of(printed: str, bounds: str) -> str:
    """Return the lines between two that contain the texts of `FIRST ... LAST`.

    Raises:
        ValueError: the output lacks such lines.
    """
    first, _, last = bounds.partition(" ... ")
    lines = printed.splitlines(keepends=True)
    for start, line in enumerate(lines):
        if first in line:
            for end in range(start, len(lines)):
                if last in lines[end]:
                    return "".join(lines[start : end + 1])
    raise ValueError(f"no lines from {first!r} to {last!r} in:\n{printed}")


def _run(
    words: Sequence[str | Path], work: Path, commands: Path
) -> "subprocess.CompletedProcess[str]":
    """Run a command as in a terminal of 80 columns; its errors are in the output."""
    environment = {
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        "PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        # What else is installed here prints nothing then.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    return subprocess.run(
        words,
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


# Without `CI`, which forbids to write expect files, and without options of a run of
# tests that runs this one. The cache has compiled kernels.
_INHERITED = ("HOME", "LANG", "LC_ALL", "TMPDIR", "EVERYORDER_CACHE_DIR")


def _write_commands(folder: Path) -> None:
    """Write the commands of the documents, as an installation would have them."""
    folder.mkdir()
    for name, words in (
        ("python", ""),
        ("everyorder", " -m everyorder"),
        (
            "pytest",
            " -m pytest -p no:cacheprovider -p everyorder.harness.pytest_plugin",
        ),
    ):
        file = folder / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        file.chmod(file.stat().st_mode | stat.S_IXUSR)


def written(page: str, outputs: Iterable[Output]) -> str:
    """Return the page with the outputs that differ replaced."""
    for output in sorted(outputs, key=lambda each: each.start, reverse=True):
        if not output.differs:
            continue
        text, end = output.printed, output.start + len(output.stated)
        if not output.is_session and not output.stated:
            # The program lacks a block of output; `start` is before its last fence.
            end = page.index("\n", output.start) + 1
            text = f"{page[output.start : end]}\n```\n{text}```\n"
        page = page[: output.start] + text + page[end:]
    return page


def main(arguments: Sequence[str]) -> int:
    """Run the pages; return 1 if one fails, or differs and is not written."""
    parser = ArgumentParser(prog="python -m tests.tools.documents")
    parser.add_argument("--write", action="store_true", help="write what differs")
    parser.add_argument("pages", nargs="*", type=Path, help="default: all of them")
    options = parser.parse_args(arguments)
    stale = 0
    for path in [each.resolve() for each in options.pages] or pages():
        page = path.read_text(encoding="utf-8")
        outputs = []
        with tempfile.TemporaryDirectory(prefix="everyorder-pages-") as folder:
            try:
                for output in run_page(page, Path(folder)):
                    outputs += [output] if output.differs else []
            except (ProgramFailed, ValueError) as error:
                # The outputs before it are written, and the other pages are run.
                print(f"{path.relative_to(ROOT)}: {error}")
                stale += 1
        for output in outputs:
            line = page.count("\n", 0, output.start) + 1
            print(f"{path.relative_to(ROOT)}:{line}: the output differs")
        for block in blocks_of(page):
            if not block.can_run:
                line = page.count("\n", 0, block.start)
                needed = block.notes["needs"]
                print(f"{path.relative_to(ROOT)}:{line}: not run, needs {needed}")
        if options.write:
            path.write_text(written(page, outputs), encoding="utf-8")
        else:
            stale += len(outputs)
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
