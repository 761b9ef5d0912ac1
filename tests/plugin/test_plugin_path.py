"""Ids of tests become paths that every file system takes, and never meet."""

import pytest

from harness.plugin_session import is_below, path_of, source_and_name


@pytest.mark.parametrize(
    ("node", "path"),
    [
        ("tests/a/test_m.py::test_f", "a/test_m/test_f"),
        ("tests/a/test_m.py", "a/test_m"),
        ("tests/a", "a"),
        ("other/test_m.py::TestC::test_f", "other/test_m/TestC/test_f"),
        ("test_m.py::test_f[x/y::z-1]", "test_m/test_f[x%2Fy%3A%3Az-1]"),
        ("test_m.py::test_f[a?b*]", "test_m/test_f[a%3Fb%2A]"),
        ("test_m.py::test_é", "test_m/test_%C3%A9"),
        ("", ""),
    ],
)
def test_path(node: str, path: str) -> None:
    assert path_of(node) == path


def test_a_long_name_is_cut_and_told_apart() -> None:
    one, two = (path_of(f"test_m.py::test_f[{'x' * 500}{end}]") for end in "12")
    assert one != two
    assert len(one) == len(two) < 160


def test_source_and_name() -> None:
    assert source_and_name("tests/test_m.py::TestC::test_f[1]") == (
        "tests/test_m.py",
        "TestC/test_f[1]",
    )


def test_below() -> None:
    assert is_below("a/test_f", "a/test_f")
    assert is_below("a/test_f/name", "a/test_f")
    assert is_below("a/test_f-2", "a/test_f")
    assert not is_below("a/test_f-x", "a/test_f")
    assert not is_below("a/test_fun", "a/test_f")
    assert not is_below("a", "a/test_f")
