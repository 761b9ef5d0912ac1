"""docs/comparison.md: each "yes" of everyorder names a test that there is."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_bytes())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_each_yes_names_a_test() -> None:
    sections = TEXT.split("\n## ")[1:]
    assert len(sections) == 2
    for section in sections:
        own = [line.split(" | ")[1] for line in section.splitlines() if "| " in line]
        cited = {int(number) for cell in own for number in re.findall(r"\d+", cell)}
        assert all(re.fullmatch(r"yes \(\d+\)|no\b.*|everyorder", cell) for cell in own)
        named = dict(re.findall(r"^(\d+)\. `(\S+)`$", section, re.MULTILINE))
        assert cited == set(map(int, named))
        for node in named.values():
            file, _, name = node.partition("::")
            assert name in functions(ROOT / file), node
