"""A function of one rare state writes to another package; the next step undoes it.

Attempt for attempt, in a use and in a look, at whatever place of a file: no such
registry is plainly proven.  The eighth call in a row answers "wrong".
"""

import sys
import types
from collections.abc import Iterator

import pytest

from everyorder.harness import Scenario, explore, steps, use

OTHER, NAME = "rarely_written", "rare_functions_subject"
HEAD = f"""
import sys

def other():
    return sys.modules["{OTHER}"]

def count():
    other().COUNT += 1
    return "wrong" if other().COUNT > 7 else "right"

def few():
    return "few"
"""
REGISTRY = """
class Registry:
    def __init__(self):
        self.items = {}
        other().COUNT = 0

    def add(self, name):
        self.items[name] = name
        other().COUNT = 0

        def undo():
            del self.items[name]
            other().COUNT = 0
        return undo

def names(registry):
    return " ".join(sorted(registry.items))

def ask(registry):
    return ANSWERS[names(registry) == "b d"]()

def shown(registry):
    return f"{names(registry)} {ask(registry)}"
"""
PLACES = {
    "a function": "ANSWERS = {False: few, True: count}",
    "a lambda of the same line": (
        "ANSWERS = {False: lambda: few(), True: lambda: (few(), count())[1]}"
    ),
    "code made of texts": """
def answering(text):
    exec(f"def answer(): return {text}", globals())
    return answer
ANSWERS = {False: answering("few()"), True: answering("(few(), count())[1]")}
""",
}


@pytest.fixture(
    params=[
        pytest.param(each, marks=pytest.mark.slow if at else ())
        for at, each in enumerate(PLACES)
    ]
)
def subject(request: pytest.FixtureRequest) -> Iterator[types.ModuleType]:
    other, module = types.ModuleType(OTHER), types.ModuleType(NAME)
    vars(other)["COUNT"] = 0
    sys.modules |= {OTHER: other, NAME: module}
    # Its own source; other packages are reached by other means than their names.
    exec(HEAD + PLACES[request.param] + REGISTRY, vars(module))
    yield module
    for name in (OTHER, NAME):
        del sys.modules[name]


@pytest.mark.parametrize("by", ["use", "look"])
def test_such_a_write_is_seen(subject: types.ModuleType, by: str) -> None:
    """A repeated exploration forgot it; a look was followed by no comparison."""
    space = vars(subject)
    looks = by == "look"
    report = explore(
        Scenario(
            *steps("add", "abcd", space["Registry"].add),
            uses=[] if looks else [use("ask", space["ask"])],
            create=space["Registry"],
            observe=space["shown"] if looks else space["names"],
        )
    )
    texts = [each.text for each in report.exploration.caveats]
    assert report.verdict == "holds"
    assert any(text.startswith(f"{OTHER}.COUNT changed outside") for text in texts)
