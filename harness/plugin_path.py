"""From the id of a test to the path of its scenarios, and back to what is below it.

True only here: names.  A test's id has characters that no file may have on some system;
they are written as in a URL, so that two ids never meet in one path.

    tests/a/test_m.py::TestC::test_f[x/y]    a/test_m/TestC/test_f[x%2Fy]
"""

from hashlib import blake2b
from urllib.parse import quote

# File systems take names of 255 bytes; suffixes and temporary names need some.
MOST_LETTERS = 120

# Beside letters, digits and `_.-~`, what every file system takes.
_SAFE = "[]=,+@ "


def source_and_name(node: str) -> tuple[str, str]:
    """The file of a test's id, and a scenario's name for the rest of it."""
    source, _, rest = node.partition("::")
    return source, "/".join(_part(part) for part in _parts(rest))


def path_of(node: str) -> str:
    """The path of the scenario that a test explores if it names none."""
    source, name = source_and_name(node)
    base = source.removesuffix(".py").removeprefix("tests/")
    return f"{base}/{name}" if name else base


def is_below(path: str, base: str) -> bool:
    """Whether a scenario's path is one that a test of this path may have explored."""
    if path == base or path.startswith(f"{base}/"):
        return True
    return path.startswith(f"{base}-") and path[len(base) + 1 :].isdigit()


def _parts(rest: str) -> list[str]:
    """The parts of an id; a parameter in brackets may hold '::' itself."""
    head, bracket, parameter = rest.partition("[")
    parts = head.split("::") if head else []
    if bracket and parts:
        parts[-1] += bracket + parameter
    return parts


def _part(part: str) -> str:
    written = quote(part, safe=_SAFE)
    if len(written) <= MOST_LETTERS:
        return written
    digest = blake2b(part.encode(), digest_size=8).hexdigest()
    return f"{written[:MOST_LETTERS]}-{digest}"
