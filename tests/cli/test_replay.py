import pytest

from harness.cli import exit_code
from harness.engine import encode
from tests.cli.conftest import Project

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

wrong: order at {1 2}, without looks between
first divergence in 'state' (- expected, + found):
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
    from harness.catalogue import load

    [entry] = load((name,), start=project.root).entries
    return entry.scenario.digest


def test_a_history_is_played(faulty: Project) -> None:
    result = faulty.run("replay", "2cmkb-9r", "order")
    assert (result.output, result.exit_code) == (PLAYED, exit_code.FAILED)


def test_a_history_that_shows_nothing(project: Project) -> None:
    replay_id = encode(digest(project, "sound"), 5, (2, 0, 0, 3))
    result = project.run("replay", replay_id)
    assert (result.output, result.exit_code) == (SOUND, exit_code.OK)


def test_a_broken_law(faulty: Project) -> None:
    text = faulty.text("replay", "2cmkb-9r", "law")
    assert text.endswith(
        "wrong: law at {1 2}, without looks between\n"
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
        "from harness.scenario import Scenario, step\n"
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
    from harness import engine
    from harness.cli import replay as module
    from harness.engine import Violation

    replay_id = encode(digest(faulty, "order"), 4, LONG)
    assert "." in replay_id
    real = engine.explore

    def explored(*args: object, **options: object) -> object:
        from dataclasses import replace

        found = real(*args, **options)  # type: ignore[arg-type]  # passed on as given
        violation = Violation("order", (0, 1), "a", "b", LONG)
        return replace(found, violations=(*found.violations, violation))

    result = faulty.run("replay", replay_id, "test_faulty/order")
    assert result.exit_code == exit_code.REFUSED
    assert "its history is too long to stand in it" in result.output
    monkeypatch.setattr(module, "explore", explored)
    text = faulty.text("replay", replay_id, "test_faulty/order")
    assert text.startswith("scenarios/test_faulty/order: 62 operations from a fresh")
    assert "wrong: order at {1 2}, without looks between\n" in text


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
    assert (result.output, result.exit_code) == (
        f"Error: {message}\n",
        exit_code.REFUSED,
    )
