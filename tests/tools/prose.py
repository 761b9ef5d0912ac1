"""Measure how hard prose and names are to read.

    python -m tests.tools.prose                   the figures of the product, by area
    python -m tests.tools.prose FILE ...          the findings in these files
    python -m tests.tools.prose --staged FILE ... the findings in lines to be committed

Prose is docstrings, comments and texts of at least four words.  The patterns below are
constructions that engineers who read English as a working language stumble over; a
finding is a hint, and CONTRIBUTING.md has the rules of style.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Openings of docstrings.
OPENINGS = (re.compile(r"(What|Who\w*|Whatever|Where|How|Whether)\b(?![^.]*\?)"),)
# Words that begin the clauses of "of what is ..." and the like.
_BEFORE = (
    "by|of|with|from|to|in|at|for|and|as|than|says?|shows?|keeps|knows|returns|gives|is"
)
_AFTER = (
    "is|was|were|are|has|had|it|they|an?|the|comes|came|can|could|may|must|follows|does"
    "|nobody|somebody|others?|every"
)
_VERBS = (
    "is|are|was|were|has|have|holds|keeps|takes|knows|makes|needs|gets|gives|stands"
)
_PLACES = (
    "beside|between|for|in|on|at|there|under|behind|below|above|before|where|as|by|with"
    "|alone"
)
# Anywhere in prose -> what to write instead.  "There is no" states existence.
WORDING: Mapping[str, str] = {
    rf"(?<!there )\b({_VERBS}) no (?!longer|more|matter)\w+": "negate the verb",
    r"\b(is|are|be|was|were|been|,) told\b|\band told\b": "report, raise or log",
    r"\b(is|are|was|were|nothing|what) to be \w+|\bto be had\b": "use an active verb",
    r"\b(nobody|somebody|anybody|whoever|everybody)('s)?\b": "name the role",
    rf"\b({_BEFORE}) what ({_AFTER})\b": "use a noun",
    rf"\b(stands?|lies?|lay)\b ({_PLACES})": "is, or is stored",
    r"\bbesides?\b": "next to, or also",
    r"\bof (its|their|one's|your|our|somebody's|nobody's) own\b": "its own, separate",
    r"\bof (ours|theirs|others)\b": "name the owner",
    r"\b(nothing|none|no one|nobody|no \w+|anything) but\b": "only",
    r"\b(likewise|anew|lest|thereof|henceforth|whichever|dear|dearer)\b": "plainly",
    r"\b(of a kind|at hand|goes by|comes of|comes and goes|come and go)\b": "plainly",
}
_RULES = [(re.compile(each, re.IGNORECASE), advice) for each, advice in WORDING.items()]

# Participles and pronouns that do not say which thing a variable holds.
HEADLESS_NAMES = frozenset(
    {
        *("found", "made", "given", "held", "shown", "alone", "beside", "known"),
        *("told", "kept", "taken", "meant", "asked", "said", "wanted", "seen", "some"),
    }
)
_FEWEST_BLANKS = 3
_HUNK = re.compile(r"@@ -\S+ \+(\d+)")


@dataclass(frozen=True, slots=True)
class Measure:
    """Counts over some files."""

    words: int
    findings: int
    bindings: int
    headless: int

    @property
    def rate(self) -> float:
        """Findings per 1,000 words."""
        return 1000 * self.findings / max(self.words, 1)

    @property
    def share(self) -> float:
        """Percentage of bindings with a name of `HEADLESS_NAMES`."""
        return 100 * self.headless / max(self.bindings, 1)


def texts_of(source: str) -> Iterator[tuple[bool, int, str]]:
    """Yield (is a docstring, line, text) for each piece of prose in a module."""
    tree = ast.parse(source)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            if ast.get_docstring(node):
                (first, *_) = node.body
                assert isinstance(first, ast.Expr), "a docstring is an expression"
                assert isinstance(first.value, ast.Constant), "a docstring is a text"
                docstrings.add(id(first.value))
                yield True, first.lineno, " ".join(str(first.value.value).split())
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and node.value.count(" ") >= _FEWEST_BLANKS
        ):
            yield False, node.lineno, " ".join(node.value.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield False, token.start[0], token.string.lstrip("# ")


def findings_in(text: str, *, docstring: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the words of a text that match a pattern, each with its advice."""
    for pattern, advice in _RULES:
        for match in pattern.finditer(text):
            yield match[0], advice
    for pattern in OPENINGS if docstring else ():
        if (opening := pattern.match(text)) is not None:
            yield opening[0], "begin with an imperative verb"


def bindings_of(source: str) -> Iterator[str]:
    """Yield the name of each variable and parameter that a module binds."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def measure(files: Iterable[Path]) -> Measure:
    """Count words, findings and bindings of files."""
    words = findings = bindings = headless = 0
    for file in files:
        source = file.read_text(encoding="utf-8")
        for docstring, _, text in texts_of(source):
            words += len(text.split())
            findings += sum(1 for _ in findings_in(text, docstring=docstring))
        for name in bindings_of(source):
            bindings += 1
            headless += name in HEADLESS_NAMES
    return Measure(words, findings, bindings, headless)


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below some folders of the repository."""
    return [path for each in folders for path in sorted((ROOT / each).rglob("*.py"))]


def added_lines(diff: str) -> Iterator[tuple[str, int, str]]:
    """Yield file, line number and text of each line that a diff adds."""
    path, number = "", 0
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ ").removeprefix("b/")
        elif (hunk := _HUNK.match(line)) is not None:
            number = int(hunk[1])
        elif line.startswith("+"):
            yield path, number, line[1:]
            number += 1


def _staged(files: list[str]) -> Iterator[tuple[str, int, str, str]]:
    command = ["git", "diff", "--cached", "--unified=0", "--no-color", "--", *files]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for path, number, line in added_lines(ran.stdout):
        for words, advice in findings_in(line):
            yield path, number, words, advice


def _whole(files: list[str]) -> Iterator[tuple[str, int, str, str]]:
    for file in files:
        for docstring, number, text in texts_of(Path(file).read_text(encoding="utf-8")):
            for words, advice in findings_in(text, docstring=docstring):
                yield file, number, words, advice


def main(arguments: list[str]) -> int:
    """Print figures or findings; return 1 if there are findings."""
    if not arguments:
        for area in ("runtime", "harness", "invariants"):
            counted = measure(python_files(area))
            print(
                f"{area:12} {counted.rate:5.1f} per 1,000 words, "
                f"{counted.share:5.2f} % of bindings"
            )
        return 0
    staged = arguments[0] == "--staged"
    rows = list(_staged(arguments[1:]) if staged else _whole(arguments))
    for path, number, words, advice in rows:
        print(f"{path}:{number}: '{words}': {advice}")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
