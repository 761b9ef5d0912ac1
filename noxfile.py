"""Run the checks on each supported version of Python, and check the wheel.

    nox -l                          list the sessions
    nox -s tests-3.13               run the tests on one version
    nox -s tests -- tests/schema    run some tests on every version

Rules:
- the Makefile holds the commands; a session chooses the interpreter and an environment;
- a session whose interpreter is missing is skipped with a message, except under CI,
  where nox reports an error;
- `light` and `wheel` install what a user gets, without the tools of development.
"""

from pathlib import Path
from zipfile import ZipFile

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["tests", "light", "lint", "types", "wheel"]

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
OLDEST = VERSIONS[0]
ROOT = Path(__file__).parent
CONSTRAINTS = ROOT / "constraints.txt"

# A registry of the user, in a package that has the name of one of our folders.
REGISTRY = """\
class Plugins:
    def __init__(self) -> None:
        self.names: dict[str, int] = {}

    def add(self, name: str) -> None:
        self.names[name] = 1

    def remove(self, name: str) -> None:
        del self.names[name]
"""
SCENARIO = """\
from everyorder import Scenario, step, use
from runtime.plugins import Plugins

plugins = Scenario(
    step('add("a")', lambda r: r.add("a"), undo=lambda r, _: r.remove("a")),
    step('add("b")', lambda r: r.add("b"), undo=lambda r, _: r.remove("b")),
    uses=[use("names", lambda r: ", ".join(sorted(r.names)))],
    create=Plugins,
    observe=lambda r: ", ".join(sorted(r.names)),
)
"""
# A step without its function: a type checker has to refuse it.
WRONG = """\
from everyorder import step

broken = step('add("a")')
"""


def constraints(session: nox.Session) -> list[str]:
    """Return pip's options for the locked versions, or none on another Python."""
    locked = CONSTRAINTS.read_text(encoding="utf-8").split(maxsplit=3)[2]
    if session.python == locked:
        return ["--constraint", str(CONSTRAINTS)]
    session.log(f"constraints.txt is for Python {locked}: installing the newest")
    return []


def make(session: nox.Session, target: str, *options: str) -> None:
    """Run a target of the Makefile with the interpreter of the session."""
    python = f"{session.bin}/python"
    venv = f"{session.virtualenv.location}/make"
    session.run(
        "make", target, f"PYTHON={python}", f"VENV={venv}", *options, external=True
    )


@nox.session(python=VERSIONS)
def tests(session: nox.Session) -> None:
    """Run `make test`; paths after `--` choose the tests."""
    make(session, "test", f"TESTS={' '.join(session.posargs)}")


@nox.session(python=OLDEST)
def lint(session: nox.Session) -> None:
    """Run `make lint`."""
    make(session, "lint")


@nox.session(python=OLDEST)
def types(session: nox.Session) -> None:
    """Run `make types`."""
    make(session, "types")


@nox.session(python=VERSIONS)
def light(session: nox.Session) -> None:
    """Install without extras and without tools, then explore a scenario."""
    session.install(*constraints(session), str(ROOT))
    explore(session)


@nox.session(python=OLDEST)
def wheel(session: nox.Session) -> None:
    """Build the distributions, check the wheel, then use it and its types."""
    pinned = constraints(session)
    session.install(*pinned, "hatchling", "mypy")
    folder = Path(session.create_tmp(), "dist").resolve()
    for old in folder.glob("everyorder-*"):
        old.unlink()
    command = ("python", "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel")
    session.run(*command, "-d", str(folder))
    (built,) = folder.glob("*.whl")
    check_names(session, built)
    session.install(*pinned, "--force-reinstall", "--no-deps", str(built))
    session.install(*pinned, str(built))
    project = explore(session)
    with session.chdir(project):
        (project / "wrong.py").write_text(WRONG, encoding="utf-8")
        session.run("mypy", "--strict", "test_plugins.py")
        session.run("mypy", "--strict", "wrong.py", success_codes=[1])


def check_names(session: nox.Session, built: Path) -> None:
    """Check that the wheel holds one package, its types and its licence.

    The session fails if it holds another top-level name, or lacks one of the files.
    """
    members = ZipFile(built).namelist()
    metadata = f"{'-'.join(built.name.split('-')[:2])}.dist-info"
    top = {name.partition("/")[0] for name in members} - {"everyorder", metadata}
    if top:
        session.error(f"the wheel holds more than `everyorder`: {', '.join(top)}")
    for name in ("everyorder/py.typed", f"{metadata}/licenses/LICENSE"):
        if name not in members:
            session.error(f"the wheel lacks {name}")


def explore(session: nox.Session) -> Path:
    """Write a project with packages named as our folders, and explore its scenario."""
    project = Path(session.create_tmp(), "project").resolve()
    for package in ("runtime", "harness", "invariants"):
        (project / package).mkdir(parents=True, exist_ok=True)
        (project / package / "__init__.py").touch()
    # Without it, the root of this checkout would be the root of the project too.
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (project / "runtime" / "plugins.py").write_text(REGISTRY, encoding="utf-8")
    (project / "test_plugins.py").write_text(SCENARIO, encoding="utf-8")
    with session.chdir(project):
        session.run("everyorder", "run", "test_plugins.py")
    return project
