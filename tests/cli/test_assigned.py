"""Where variables are assigned."""

from pathlib import Path

from harness.uncollected import assigned_lines


def test_the_line_of_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("a = 1\nb = a, c = 2, 3\na = 4\nd: int = 5\n")
    assert assigned_lines(file) == {"a": 3, "b": 2, "c": 2, "d": 4}
    file.write_text("a = (\n")
    assert assigned_lines(file) == {}
    assert assigned_lines(tmp_path / "none.py") == {}
