"""Report wording that is hard to read in the lines that a commit adds.

    python -m tests.prose FILE ...          check the staged lines of these files
    python -m tests.prose --all FILE ...    check all lines of these files

Only added lines are checked, so that a file with old wording can still be edited. A
report is a hint with a replacement; CONTRIBUTING.md has the rules of style.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent

# A pattern -> what to write instead.
WORDING: Mapping[str, str] = {
    # "There is no" states existence.
    r"(?<!here )\b(is|are|was|were|has|have) no (?!longer|more)\w+": "negate the verb",
    r"\b(nobody|somebody|anybody|whoever|everybody)\b": "name the role",
    r"\b(of|with|from|to|by) what (is|was|has|it|they|the)\b": "use a noun",
    r"\b(is|are|be|was|were|been) told\b": "report, raise or log",
    r"\b(stands?|lies?) (in|on|at|beside|between|for|there)\b": "is, or is stored",
    r"\b(likewise|anew|lest|whichever)\b": "also, again, so that ... not, any",
    r"\b(nothing|none|nobody) but\b": "only",
    r"\bof (its|their|your|our) own\b": "its own, or a separate",
    r'"""(Whether|What|Who|How|Where)\b': "begin with an imperative verb",
}
_RULES = [(re.compile(pattern), advice) for pattern, advice in WORDING.items()]
_HUNK = re.compile(r"@@ -\S+ \+(\d+)")


def findings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a line that match a rule, each with its advice."""
    for pattern, advice in _RULES:
        for match in pattern.finditer(text):
            yield match[0].strip('"'), advice


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


def staged(files: list[str]) -> Iterator[tuple[str, int, str]]:
    """Yield the lines of these files that the next commit adds."""
    command = ["git", "diff", "--cached", "--unified=0", "--no-color", "--", *files]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return added_lines(ran.stdout)


def whole(files: list[str]) -> Iterator[tuple[str, int, str]]:
    """Yield all lines of these files."""
    for file in files:
        text = Path(file).read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            yield file, number, line


def main(arguments: list[str]) -> int:
    """Print the findings; return 1 if there are any."""
    files = [each for each in arguments if each != "--all"]
    lines = whole(files) if "--all" in arguments else staged(files)
    count = 0
    for path, number, text in lines:
        for words, advice in findings(text):
            print(f"{path}:{number}: '{words}': {advice}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
