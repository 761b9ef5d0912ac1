"""Everyday mistakes of a first scenario, with all that a user sees: `*.test`.

`python -m tests.mistakes.cases --write` writes the outputs again; review the changes
before you commit them. The input of a case is the commands that the user types, and the
files of the user below their names.  `SHOP` is beside them.

True only here: times and folders of an output are placeholders; everything else is
compared as it is, at 80 columns.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest

from everyorder.harness import pytest_plugin
from everyorder.harness.cli import main
from tests.tools.golden import Case, Golden

GOLDEN = Golden(Path(__file__).parent, "tests.mistakes.cases")

SHOP = """
class Plugins:
    def __init__(self):
        self.loaders = {}

    def add(self, name):
        self.loaders[name] = f"{name} loader"

    def remove(self, name):
        del self.loaders[name]

    def find(self, name):
        return self.loaders.get(name, "none")


def names(registry):
    return ", ".join(sorted(registry.loaders))
"""

# What differs from run to run.
_VARYING = (
    (r"\(\d+(\.\d+)?\s+m?s\)", "(TIME)"),
    (r"in \d+\.\d\ds", "in TIME"),
    (r"0x[0-9a-f]+", "0xADDRESS"),
    # How pytest calls itself where it is called by Python.
    (r"pytest\.main\(\)", "pytest"),
)
# Options that change where a scenario is explored, and nothing that is printed.
_HERE = {
    "everyorder": ("--in-process",),
    "pytest": ("--everyorder-in-process", "-p", "no:cacheprovider"),
}


def commands_of(case: Case) -> list[str]:
    """Return the commands of a case, as a user types them."""
    lines = case.input.splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def files_of(case: Case) -> dict[str, str]:
    """Return the files of a case by name."""
    parts = re.split(r"(?m)^# (\w+\.\w+)\n", case.input)
    return {"shop.py": SHOP, **dict(zip(parts[1::2], parts[2::2], strict=True))}


def output(case: Case, *, as_typed: bool = False) -> str:
    """Return the commands of a case with all that each prints.

    They run in this process, unless they are to run `as_typed`; see `outputs`.
    """
    printed = []
    for command in commands_of(case):
        with TemporaryDirectory() as folder:
            for name, text in files_of(case).items():
                (Path(folder) / name).write_text(text)
            text = (_typed if as_typed else _called)(command, Path(folder))
            text = text.replace(folder, "FOLDER")
        for pattern, placeholder in _VARYING:
            text = re.sub(pattern, placeholder, text)
        lines = (line.rstrip() for line in text.rstrip("\n").split("\n"))
        printed += [f"$ {command}", *lines]
    return "".join(f"{line}\n" for line in printed)


def _typed(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command)
    environment = {
        **os.environ,
        "COLUMNS": "80",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    environment.pop("CI", None)
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def _called(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command)
    printed = StringIO()
    with _inside(folder), redirect_stdout(printed), redirect_stderr(printed):
        if program == "pytest":
            own = [*arguments, *_HERE[program]]
            # By itself, pytest would warn that the plugin is imported already.
            with patch.dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"):
                pytest.main(own, plugins=[pytest_plugin])
        else:
            here = _HERE[program] if arguments[:1] == ["run"] else ()
            with suppress(SystemExit):
                main([*arguments, *here], prog_name=program)
    return printed.getvalue()


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Context: a folder of the user; what is imported from it is forgotten."""
    before, path = Path.cwd(), [*sys.path]
    os.chdir(folder)
    try:
        with patch.dict(os.environ, COLUMNS="80"):
            os.environ.pop("CI", None)
            yield
    finally:
        os.chdir(before)
        sys.path[:] = path
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(str(folder)):
                del sys.modules[name]


def outputs(stem: str) -> dict[str, str]:
    """Return the outputs of the cases of a file, which one fresh process runs.

    Explorations read the whole process, and one that ran other tests is large.
    """
    command = [sys.executable, "-m", "tests.mistakes.cases", "--print", stem]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    printed: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return printed


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    GOLDEN.write(output)
if __name__ == "__main__" and sys.argv[1:2] == ["--print"]:
    own = [case for case in GOLDEN.cases.values() if case.file.stem == sys.argv[2]]
    print(json.dumps({case.name: output(case) for case in own}))
