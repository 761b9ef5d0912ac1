"""`everyorder replay` and `show` of scenarios whose operations end steps."""

import re

from everyorder.harness.cli import command as exits
from tests.cli.conftest import Project

ENDING = """
from everyorder import Scenario, steps, use


class Registry:
    def __init__(self):
        self.names, self.count = [], 0

    def add(self, name):
        self.names.append(name)
        self.count += 1
        return lambda: self.remove(name)

    def remove(self, name):
        self.names.remove(name)
        self.count -= 1

    def clear(self):
        self.names.clear()


class Choice:
    chosen = "none"

    def choose(self, name):
        self.chosen = name
        return lambda: setattr(self, "chosen", "none")


clearing = Scenario(
    *steps("add", "ab", Registry.add),
    uses=[
        use("count()", lambda registry: registry.count),
        use("clear()", Registry.clear, ends="all"),
    ],
    create=Registry,
)
choice = Scenario(
    *steps("choose", "ab", Choice.choose, ends="all"),
    create=Choice,
    observe=lambda choice: choice.chosen,
)
"""

PLAYED = """\
scenarios/test_ending/clearing: 3 operations from a fresh system

  1  step_1 = add('a')
     at {1}
  2  clear()
     at {}; answers: None
  3  count()
     at {}; answers: 1

wrong, without observing in between: `count()` answers differently after the
same steps, as far as they are in effect: 0 or 1.
difference (- otherwise, + here):
    @@ -1 +1 @@
    -0
    +1
"""

SHOWN = """\
scenarios/test_ending/choice
   1  choose('a')
   2  choose('b')

step_2 = choose('b')
step_1 = choose('a')
    ends choose('b')

-- state
a

"""


def test_the_replay_of_a_refutation_shows_what_was_ended(project: Project) -> None:
    project.scenarios("ending", ENDING)
    text = project.text("run", "--in-process", "clearing")
    history = r" step_1 = add\('a'\)\n.* clear\(\)\n.* count\(\)\n"
    assert re.search(history, text)
    replay_id, *_ = re.findall(r"everyorder replay (\S+)", text)
    result = project.run("replay", replay_id, "clearing")
    assert (result.output, result.exit_code) == (PLAYED, exits.FAILED)


def test_a_shown_state_is_what_a_step_left(project: Project) -> None:
    """The undo of an ended step is not called afterwards."""
    project.scenarios("ending", ENDING)
    result = project.run("show", "choice", "--state", "2,1")
    assert (result.output, result.exit_code) == (SHOWN, exits.OK)
