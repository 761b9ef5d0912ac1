"""The pytest plugin: scenarios as tests, and the fixture `explore`."""

from everyorder.harness.pytest_plugin.hooks import pytest_addoption, pytest_configure

__all__ = ["pytest_addoption", "pytest_configure"]
