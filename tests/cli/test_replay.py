import pytest

from everyorder.harness.cli import command as exits
from everyorder.harness.engine import encode
from everyorder.harness.engine.oracle import Judge
from tests.cli.conftest import Project, fresh_modules, unwrapped
from tests.collecting import scenarios

PLAYED = """\
scenarios/test_faulty/order: 2 operations from a fresh system

  1  step_2 = add("b")
     at {2}
       state:
       +b
  2  step_1 = add("a")
     at {1 2}
       state:
       +a

wrong, without observing in between: what is observed differs after the same
registrations.
difference in 'state' (- otherwise, + here):
    @@ -1,2 +1,2 @@
    +b
     a
    -b
"""

SOUND = """\
scenarios/test_sound/sound: 4 operations from a fresh system

  1  count()
     at {}; answers: 0 names
  2  step_1 = add("a")
     at {1}
       state:
       +a
  3  step_1.close()
     at {}
       state:
       -a
  4  observe()
     at {}

nothing is wrong with this history
"""


def digest(project: Project, name: str) -> str:
    with fresh_modules(project.root):
        [scenario] = scenarios(name).values()
    return scenario.digest


def test_a_history_is_played(faulty: Project) -> None:
    result = faulty.run("replay", "2cmkb-9r", "order")
    assert (result.output, result.exit_code) == (PLAYED, exits.FAILED)


def test_a_history_that_shows_nothing(project: Project) -> None:
    replay_id = encode(digest(project, "sound"), 5, (2, 0, 0, 3))
    result = project.run("replay", replay_id)
    assert (result.output, result.exit_code) == (SOUND, exits.OK)


def test_a_broken_law(faulty: Project) -> None:
    text = faulty.text("replay", "2cmkb-9r", "law")
    assert text.endswith(
        'wrong, without observing in between: a law is broken after `add("a")`: '
        "at most\none name\n"
        "1 broken law:\n    at most one name\n"
    )


def test_what_is_not_deterministic(faulty: Project) -> None:
    replay_id = encode(digest(faulty, "random"), 3, (0,))
    text = faulty.text("replay", replay_id, "test_faulty/random")
    assert text.endswith(
        "wrong: nondeterminism: the same history, played twice, gave two results\n"
    )


def test_a_failing_step_is_told(faulty: Project) -> None:
    replay_id = encode(digest(faulty, "failing"), 4, (1,))
    assert (
        '  1  step_2 = add("A")\n'
        "     at {}; fails: error: ValueError\n"
        "          text: this name is taken\n"
    ) in faulty.text("replay", replay_id)


def test_a_long_change_is_shortened(project: Project) -> None:
    project.scenarios(
        "long",
        "from everyorder.harness.scenario import Scenario, step\n"
        "long = Scenario(step('fill()', lambda r: r.append(1) or r.pop), create=list, "
        "observe=lambda r: 'x\\n' * 100 * len(r))\n",
    )
    text = project.text("replay", encode(digest(project, "long"), 3, (0,)))
    assert text.count("       +x\n") == 24
    assert "       ... and 76 more lines\n" in text


LONG = (0, 1, 0, 1) * 15 + (1, 0)


def test_a_history_too_long_for_its_id_is_found_again(
    faulty: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from everyorder.harness import engine
    from everyorder.harness.cli import replay as module
    from everyorder.harness.engine import Violation

    replay_id = encode(digest(faulty, "order"), 4, LONG)
    assert "." in replay_id
    real = engine.explore

    def explored(*args: object, **options: object) -> object:
        from dataclasses import replace

        found = real(*args, **options)  # type: ignore[arg-type]  # passed on as given
        violation = Violation("order", (0, 1), "a", "b", LONG)
        return replace(found, violations=(*found.violations, violation))

    result = faulty.run("replay", replay_id, "test_faulty/order")
    assert result.exit_code == exits.REFUSED
    assert "the id is too short for its history" in result.output
    monkeypatch.setattr(module, "explore", explored)
    text = faulty.text("replay", replay_id, "test_faulty/order")
    assert text.startswith("scenarios/test_faulty/order: 62 operations from a fresh")
    assert "\nwrong, without observing in between: what is observed differs" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nonsense",), "replay id 'nonsense': it is not of the form 2tttt-bbbbc"),
        (
            ("2zzzz-78",),
            "replay id 2zzzz-78: none of 7 scenarios belongs to it; was its scenario "
            "changed since, or is it in a file that is not among the PATHS?",
        ),
        (
            ("2cmkb-9r",),
            "'2cmkb-9r' fits several scenarios: scenarios/test_faulty/order, "
            "scenarios/test_faulty/law. Name one of them.",
        ),
        (
            ("2cmkb-90", "order"),
            "replay id '2cmkb-90': the check does not hold for 4 operations; either "
            "it is mistyped, or the scenario's steps or uses were changed",
        ),
    ],
)
def test_mistakes(faulty: Project, arguments: tuple[str, ...], message: str) -> None:
    result = faulty.run("replay", *arguments)
    assert unwrapped(result) == f"Error: {message}"
    assert result.exit_code == exits.REFUSED


# The plain order of both names does not work: "b" comes first.  What is shown of them
# tells whether "c" was ever there.
UNEVEN = """
from tests.scenarios.test_sound import Scenario, step


class Names(list):
    touched = "untouched"


def add(name, *, needs=None):
    def do(registry):
        if needs is not None and needs not in registry:
            raise LookupError(needs)
        if name == "c":
            registry.touched = "touched"
        registry.append(name)
        return lambda: registry.remove(name)

    return step(f"add({name!r})", do)


def shown(registry):
    names = "".join(f"{name}\\n" for name in sorted(registry))
    return names + (registry.touched if "a" in registry else "")


uneven = Scenario(
    add("a", needs="b"), add("b"), add("c"), create=Names, observe=shown
)
"""

SIDES = """\
    @@ -1,3 +1,3 @@
     a
     b
    -untouched
    +touched
"""


def test_the_two_sides_are_those_that_a_run_shows(project: Project) -> None:
    project.scenarios("uneven", UNEVEN)
    told = project.text("run", "test_uneven")
    assert SIDES in told
    (line,) = (line for line in told.splitlines() if line.startswith("    everyorder"))
    result = project.run(*line.split()[1:])
    assert result.exit_code == exits.FAILED
    assert (
        "wrong, without observing in between: what is observed differs" in result.output
    )
    assert result.output.endswith(f"(- otherwise, + here):\n{SIDES}")


# The number of removals decides the answer, and lies where nobody looks.
HIDING = """
from tests.scenarios.test_sound import Scenario, step, use

removed = []


class Names(list):
    def __init__(self):
        removed.clear()


def add(name):
    def do(registry):
        registry.append(name)

        def undo():
            removed.append(None)
            registry.remove(name)

        return undo

    return step(f"add({name!r})", do)


hiding = Scenario(
    add("a"),
    add("b"),
    uses=[use("ask()", lambda registry: len(removed) > 2)],
    create=Names,
    observe=lambda registry: str(sorted(registry)),
    fingerprint=lambda registry: tuple(sorted(registry)),
)
"""


def test_of_hidden_state_both_histories_can_be_played(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # That no shorter history shows it would take 11,000 more, and is not asked here.
    defaults = Judge.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "operations", 2_000)
    project.scenarios("hiding", HIDING)
    told = project.text("run", "test_hiding", "--strategy", "graph")
    assert " answers differently: " in told
    assert ", although the state before it is" in " ".join(told.split())
    told = told.partition(" answers differently: ")[2].partition("\n\n")[0]
    one, other = (
        each for each in told.splitlines() if each.startswith("    everyorder")
    )
    ends = [project.run(*command.split()[1:]) for command in (other, one)]
    # The answer of each, at the last operation.
    answers = [end.output.rpartition("; answers: ")[2].split()[0] for end in ends]
    assert sorted(answers) == ["False", "True"]
    assert exits.FAILED in [end.exit_code for end in ends]


BORROWED = """
from tests.scenarios.test_sound import Scenario, shown, step


def add(name):
    def do(registry):
        from handles import Undo

        registry.append(name)
        return Undo(registry, name)

    return step(f"add({name!r})", do)


borrowed = Scenario(add("a"), add("b"), create=list, observe=shown)
"""

HANDLES = """
class Undo:
    def __init__(self, registry, name):
        self.registry, self.name = registry, name

    def close(self):
        self.registry.remove(self.name)
"""


SHOWN = """\
scenarios/test_borrowed/borrowed
   1  add('a')
   2  add('b')

step_1 = add('a')
step_2 = add('b')

-- state
a
b

"""


def borrowed(project: Project) -> str:
    """Undo handles of a package that is not followed from the start; the path."""
    project.write("handles/__init__.py", HANDLES)
    project.scenarios("borrowed", BORROWED)
    return "scenarios/test_borrowed/borrowed"


def test_undo_handles_from_a_new_package(project: Project) -> None:
    """The exploration has to begin again, as `run` does; that is nobody's matter."""
    path = borrowed(project)
    replay_id = encode(digest(project, "borrowed"), 4, (0, 1, 0))
    result = project.run("replay", replay_id, path)
    assert result.output.endswith("nothing is wrong with this history\n")
    assert result.output.count("step_1 = add('a')") == 1
    assert result.exit_code == exits.OK
    shown = project.run("show", path)
    assert (shown.output, shown.exit_code) == (SHOWN, exits.OK)
