"""Where the variables of a module are assigned, without running it.

True only here: the lines, read from the text.  A name that is assigned twice is found
where that happened last; one that no statement at the top level assigns is not found.
"""

import ast
from pathlib import Path


def assigned_lines(file: Path) -> dict[str, int]:
    """The line of each name that a module assigns, counted from 1.

    Empty for a file that cannot be read or parsed.
    """
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return {}
    lines: dict[str, int] = {}
    for statement in body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for node in (node for each in targets for node in ast.walk(each)):
            if isinstance(node, ast.Name):
                lines[node.id] = statement.lineno
    return lines
