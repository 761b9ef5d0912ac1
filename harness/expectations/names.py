"""Names of expect files that every file system accepts.

An expect file is named after its scenario, and a project is checked out on many
systems. A name is refused on all of them if one of them refuses it, changes it, or
confuses it with another name.

Rules:
- Windows reserves device names, with any suffix, and drops dots and spaces at the end;
- macOS and Windows ignore case, and macOS the form of composed characters;
- the longest name is that of encrypted home folders on Linux (eCryptfs), in bytes.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from everyorder.harness.base.errors import BadScenario

SUFFIX = ".txt"
# The suffix of observations that wait for a decision.
PENDING = ".new"

# eCryptfs encodes names: 255 bytes hold 143 of them.
MOST_BYTES = 143

_INVALID = frozenset('\\:*?"<>|\x7f') | frozenset(map(chr, range(32)))

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{name}{digit}" for name in ("com", "lpt") for digit in "123456789¹²³"]
)


def check_name(scenario: str) -> None:
    """Check that the path of a scenario can be that of a file on every system.

    Raises:
        BadScenario: it cannot; the reason names the part and a better name.
    """
    pure = PurePosixPath(scenario)
    if scenario != str(pure) or pure.is_absolute() or scenario == ".":
        raise BadScenario(
            code="BadScenarioPath",
            path=scenario,
            reason="it is not a plain relative path",
        )
    for part in pure.parts:
        longest = MOST_BYTES if part != pure.name else MOST_BYTES - len(SUFFIX)
        problem, better = _problem(part, longest)
        if problem:
            reason = (
                f"{part!r} {problem}. Rename the variable, test, file or folder, or "
                f"pass name= to the scenario: {better!r}, for example"
            )
            raise BadScenario(code="BadScenarioPath", path=scenario, reason=reason)


def _problem(part: str, longest: int) -> tuple[str, str]:
    """Return why a part of a path is refused, and a better name; "" if it is not."""
    plain = "".join("_" if sign in _INVALID else sign for sign in part)
    trimmed = plain.lstrip(". ").rstrip(". ") or "scenario"
    if plain != part:
        wrong = next(sign for sign in part if sign in _INVALID)
        return f"contains {wrong!r}, which Windows does not allow in names", trimmed
    if part.startswith("."):
        return "begins with a dot, which hides it", trimmed
    if part != trimmed:
        return "begins or ends with a space or dot, which Windows drops", trimmed
    if part.partition(".")[0].rstrip().casefold() in _DEVICES:
        stem, dot, rest = part.partition(".")
        return "is the name of a device on Windows", f"{stem}_{dot}{rest}"
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        ascii_only = part.encode("ascii", "replace").decode().replace("?", "_")
        return "contains half of a surrogate pair, which is not a character", ascii_only
    if size > longest:
        short = part.encode()[: longest // 2].decode(errors="ignore")
        return f"has {size} bytes, and some systems allow {longest}", short
    return "", ""


def folded(path: str) -> str:
    """Return what a system that ignores case and composition makes of a path."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def check_collisions(new: Iterable[str], others: Iterable[str]) -> None:
    """Check that no system confuses the files of new scenarios with other files.

    Raises:
        BadScenario: the file of a new scenario is, on some system, that of another
            scenario, or the folder of other files.
    """
    new = sorted(new)
    files: dict[str, set[str]] = {}
    folders: dict[str, set[str]] = {}
    for each in (*new, *others):
        files.setdefault(folded(each + SUFFIX), set()).add(each)
        for folder in _folders(each):
            folders.setdefault(folded(folder), set()).add(each)
    for each in new:
        rivals = files[folded(each + SUFFIX)] - {each}
        rivals |= folders.get(folded(each + SUFFIX), set())
        for folder in _folders(each):
            rivals |= files.get(folded(folder), set())
        if rivals:
            reason = (
                "systems that ignore case, or the form of composed characters, "
                f"confuse its file with that of {min(rivals)!r}. Rename one of the two"
            )
            raise BadScenario(code="BadScenarioPath", path=each, reason=reason)


def _folders(scenario: str) -> Iterator[str]:
    for folder in PurePosixPath(scenario).parents:
        if folder.name:
            yield str(folder)
