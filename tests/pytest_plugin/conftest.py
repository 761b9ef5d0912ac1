"""The fixture `project`: a project of its own, whatever plugins are installed here."""

import importlib
import os

import pytest

from tests.processes.last import (
    pytest_collection_modifyitems as pytest_collection_modifyitems,
)
from tests.pytest_plugin.project import ROOT, Project


@pytest.fixture
def last() -> None:
    """What this test loads is loaded here: pytester forgets what it sees loaded."""
    importlib.import_module("everyorder.harness.scenario.registrations")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID"):
        monkeypatch.delenv(name, raising=False)
    return Project(pytester)
