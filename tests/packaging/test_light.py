"""The light installation: the wheel alone, in an empty environment, beside other code.

Each interpreter that is installed gets one.  The project has packages of its own that
are named `harness` and `runtime`.
"""

import os
import shutil
import subprocess
import sys
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
MEGABYTE = 1_000_000
# What people pay for testing a registry.
LIGHT = 40 * MEGABYTE
# Whatever else an environment has come from pip itself.
PACKAGES = {
    *("click", "everyorder", "filelock", "iniconfig", "jinja2", "lazy-loader"),
    *("markdown-it-py", "markupsafe", "mdurl", "packaging", "pluggy", "pygments"),
    *("pytest", "rich"),
}
VERSIONS = ("3.11", "3.12", "3.13", "3.14")

REGISTRY = '''\
class Plugins:
    """A registry that remembers what it was asked for."""

    def __init__(self) -> None:
        self.by_name: dict[str, object] = {}
        self.remembered: dict[str, object] = {}

    def add(self, name: str, plugin: object) -> None:
        self.by_name[name] = plugin
        self.remembered.clear()

    def remove(self, name: str) -> None:
        del self.by_name[name]

    def find(self, name: str) -> object:
        if name not in self.remembered:
            self.remembered[name] = self.by_name.get(name)
        return self.remembered[name]


class Forgetful(Plugins):
    def remove(self, name: str) -> None:
        super().remove(name)
        self.remembered.clear()
'''
SCENARIOS = """\
from everyorder import Scenario, step, use
from runtime.plugins import Forgetful, Plugins


def adding(name):
    return step(
        f"add({name!r})",
        lambda registry: registry.add(name, len(name)),
        undo=lambda registry, _: registry.remove(name),
    )


def scenario(create):
    return Scenario(
        adding("json"),
        adding("text"),
        uses=[use("find('json')", lambda registry: registry.find("json"))],
        create=create,
        observe=lambda registry: ", ".join(sorted(registry.by_name)),
    )


stale = scenario(Plugins)
right = scenario(Forgetful)
"""
OF_TENSORS = """\
from everyorder import Scenario, call, define, impl

scale = Scenario(
    define("mine::scale(Tensor x) -> Tensor"),
    impl("mine::scale", lambda x: x, "CPU"),
    uses=[call("mine::scale", "cpu")],
)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    (built,) = folder.glob("*.whl")
    return built


def interpreters() -> list[object]:
    """Return the installed interpreters of supported versions, ours first."""
    own = f"3.{sys.version_info.minor}"
    found: list[object] = [pytest.param(sys.executable, id=own)]
    for version in VERSIONS:
        path = shutil.which(f"python{version}")
        if version != own and path is not None and starts(path):
            found.append(pytest.param(path, id=version))
    return found


def starts(path: str) -> bool:
    """Return True if an interpreter runs: a shim of a version manager may not."""
    return subprocess.run([path, "-c", ""], capture_output=True).returncode == 0


@pytest.fixture(scope="module", params=interpreters())
def environment(
    request: pytest.FixtureRequest,
    wheel: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """An environment that holds the wheel, and what it requires."""
    folder = tmp_path_factory.mktemp("environment")
    run(request.param, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a conftest, without an ini file, in which the scenarios are."""
    for package in ("harness", "invariants", "runtime"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "runtime" / "plugins.py").write_text(REGISTRY)
    (tmp_path / "conftest.py").write_text("import sys\nsys.path.insert(0, '.')\n")
    (tmp_path / "test_plugins.py").write_text(SCENARIOS)
    (tmp_path / "test_tensors.py").write_text(OF_TENSORS)
    return tmp_path


def run(*command: object, cwd: Path = ROOT, code: int = 0) -> str:
    """Run a command without our environment, and return what it prints."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYTEST", "COVERAGE", "VIRTUAL_ENV", "COV_"))
        # Where it is set, nothing is accepted.
        and name != "CI"
    }
    ended = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
    )
    output = ended.stdout + ended.stderr
    assert ended.returncode == code, output
    return output


def test_it_is_light(environment: Path) -> None:
    (packages,) = environment.glob("lib/python*/site-packages")
    size = 0
    names = set()
    for metadata in packages.glob("*.dist-info"):
        name = str(Parser().parsestr((metadata / "METADATA").read_text())["Name"])
        if name.lower() in ("pip", "setuptools"):
            continue
        names.add(name.lower().replace("_", "-"))
        for line in (metadata / "RECORD").read_text().splitlines():
            path = packages / line.rsplit(",", 2)[0].strip('"')
            size += path.stat().st_size if path.is_file() else 0
    assert names == PACKAGES
    assert 5 * MEGABYTE < size <= LIGHT, f"{size / MEGABYTE:.1f} MB"


def test_a_stale_cache_and_a_proof(environment: Path, project: Path) -> None:
    command = environment / "bin" / "everyorder"
    output = run(command, "run", "test_plugins.py::stale", cwd=project, code=1)
    assert "registry.remembered['json']: <absent> / 4" in output
    (replay,) = [line.split()[2:] for line in output.splitlines() if " replay " in line]
    assert "add('json')" in run(command, "replay", *replay, cwd=project, code=1)
    output = run(command, "run", "test_plugins.py::right", cwd=project)
    assert "1 scenario: 1 proven" in output


def test_pytest_and_the_gate_agree(environment: Path, project: Path) -> None:
    command = environment / "bin" / "everyorder"
    python = environment / "bin" / "python"
    test = "test_plugins.py::right"
    update = ("-m", "pytest", "-q", test, "--everyorder-update")
    run(python, *update, cwd=project)
    assert "1 passed" in run(python, "-m", "pytest", "-q", test, cwd=project)
    run(command, "gate", test, cwd=project)


def test_tensors_name_their_extra(environment: Path, project: Path) -> None:
    command = environment / "bin" / "everyorder"
    wanted = "python -m pip install 'everyorder[runtime]'"
    for code, *arguments in ((1, "run", "test_tensors.py"), (2, "runtime", "warm")):
        output = run(command, *arguments, cwd=project, code=code)
        assert wanted in output
        assert "Traceback" not in output


def test_dispatchers_need_no_extra(environment: Path, tmp_path: Path) -> None:
    program = """
from everyorder.runtime import Dispatcher, Library, futures, rpc
from everyorder import invariants
dispatcher = Dispatcher()
with Library("mine", "DEF", dispatcher=dispatcher) as library:
    library.define("f(int x) -> int")
    library.impl("f", lambda x: x + 1)
    print(invariants.check(dispatcher.snapshot()))
"""
    python = environment / "bin" / "python"
    assert run(python, "-c", program, cwd=tmp_path) == "[]\n"


def test_the_wheel_holds_one_package(wheel: Path) -> None:
    members = ZipFile(wheel).namelist()
    metadata = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    assert {name.partition("/")[0] for name in members} == {"everyorder", metadata}
    assert "everyorder/py.typed" in members
    assert f"{metadata}/licenses/LICENSE" in members
    kinds = {Path(name).suffix for name in members if name.startswith("everyorder/")}
    assert kinds == {".py", ".pyi", ".typed", ".txt", ".j2", ".css", ".js"}
    assert not [name for name in members if "test" in Path(name).name]
