"""Paths of scenarios, node ids of tests, and the files that they name.

A test's id may contain characters that are invalid in file names on some system; in the
path of a scenario they are escaped as in a URL, so that two ids never have the same
path.

    tests/a/test_m.py::TestC::test_f[x/y]    a/test_m/TestC/test_f[x%2Fy]

No import in this file loads pytest.
"""

from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

# File systems allow names of 255 bytes; suffixes and temporary names need some.
MOST_LETTERS = 120

# Characters that every file system allows, except letters, digits and `_.-~`.
_SAFE = "[]=,+@ "


def source_and_name(node: str) -> tuple[str, str]:
    """Return the file of a test's id, and a scenario's name for the rest of it."""
    source, _, rest = node.partition("::")
    return source, "/".join(_part(part) for part in _parts(rest))


def path_of(node: str) -> str:
    """Return the path of a scenario that a test explores without an explicit name."""
    source, name = source_and_name(node)
    base = source.removesuffix(".py").removeprefix("tests/")
    return f"{base}/{name}" if name else base


def is_below(path: str, base: str) -> bool:
    """Return True if a test with the path `base` may have explored `path`."""
    if path == base or path.startswith(f"{base}/"):
        return True
    return path.startswith(f"{base}-") and path[len(base) + 1 :].isdigit()


def _parts(rest: str) -> list[str]:
    """Return the parts of an id; a parameter in brackets may contain '::' itself."""
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


def file_of(path: str, root: Path, least: int = 0) -> tuple[Path | None, list[str]]:
    """Return the file that a scenario's whole path begins with, and the rest of it.

    `Scenario.path` defines the form.  At least `least` parts are left for the rest; the
    file is None if there is no such file.
    """
    parts = path.split("/")
    for count in range(len(parts) - least, 0, -1):
        for folder in ("tests/", ""):
            file = root / f"{folder}{'/'.join(parts[:count])}.py"
            if file.is_file():
                return file, parts[count:]
    return None, parts
