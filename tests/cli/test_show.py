import importlib

import pytest

from everyorder.harness.cli import command as exits
from everyorder.harness.cli import replay as show_command
from tests.cli.conftest import Project, unwrapped

DISPATCHER = """
from everyorder.harness.scenario import Scenario, define, impl


def on_cpu(x):
    return x


two = Scenario(
    define("demo::foo(Tensor x) -> Tensor"),
    impl("demo::foo", on_cpu, "CPU"),
    probes=("cpu", "meta"),
)
"""

BOTH = """\
scenarios/test_sound/sound
   1  add("a")
   2  add("b")

step_2 = add("b")
step_1 = add("a")

-- state
a
b

"""


@pytest.mark.parametrize("state", ["2,1", "{2, 1}", " 2 ,1,"])
def test_some_steps_in_their_order(project: Project, state: str) -> None:
    assert project.text("show", "sound", "--state", state) == BOTH


def test_all_steps_and_none(project: Project) -> None:
    assert "-- state\na\nb\n" in project.text("show", "test_sound/newest")
    assert project.text("show", "sound", "--state", "").endswith(
        '   2  add("b")\n\n\n-- state\n\n\n'
    )


@pytest.mark.usefixtures("last")
def test_a_file_and_a_name(project: Project) -> None:
    text = project.text("show", "tests/scenarios/test_sound.py::newest")
    assert text.startswith("scenarios/test_sound/newest\n")
    project.write("tests/test_lone.py", DISPATCHER)
    for name in ("tests/test_lone.py", "test_lone/two"):
        assert project.text("show", name).startswith("test_lone/two\n")


def test_a_failing_step_is_told(faulty: Project) -> None:
    assert faulty.text("show", "failing").endswith(
        'step_2 = add("A")\n    error: ValueError\n    text: this name is taken\n\n'
        "-- state\na\n\n"
    )


@pytest.mark.usefixtures("last")
def test_the_whole_table(project: Project) -> None:
    project.scenarios("two", DISPATCHER)
    text = project.text("show", "two", "--table")
    assert "\n-- table of demo::foo\n" in text
    assert "\nCPU: on_cpu (step 2) [kernel]\n" in text
    assert "\nAutogradCPU: fallthrough" in text
    assert "-- table" not in project.text("show", "two", "--table", "--state", "")


@pytest.mark.usefixtures("last")
def test_the_trace_of_each_probe(project: Project) -> None:
    project.scenarios("two", DISPATCHER)
    text = project.text("show", "two", "--trace")
    assert text.endswith(
        "-- call demo::foo with cpu\n"
        "on_cpu (step 2)\n"
        "  [call] op=[demo::foo], key=[CPU]\n"
        "\n"
        "-- call demo::foo with meta\n"
        "MissingKernel: no kernel\n"
        "  [call] op=[demo::foo], key=[Meta]\n"
        "\n"
    )


@pytest.mark.usefixtures("last")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("sond",),
            "there is no Python file, folder or scenario 'sond'; did you mean "
            "scenarios/test_sound/sound?",
        ),
        (
            ("test_sound",),
            "'test_sound' fits several scenarios: scenarios/test_sound/sound, "
            "scenarios/test_sound/newest. Name one of them.",
        ),
        (
            ("sound", "--state", "1,3"),
            "invalid step list '1,3': expected distinct numbers from 1 to 2, joined by "
            "commas, as in '3,1'; '' is the empty list.",
        ),
        (
            ("sound", "--state", "1,1"),
            "invalid step list '1,1': expected distinct numbers from 1 to 2, joined by "
            "commas, as in '3,1'; '' is the empty list.",
        ),
        (
            ("sound", "--state", "a"),
            "invalid step list 'a': expected distinct numbers from 1 to 2, joined by "
            "commas, as in '3,1'; '' is the empty list.",
        ),
        (
            ("sound", "--table"),
            "--table shows the internals of a dispatcher, but "
            "scenarios/test_sound/sound explores another registry; without --table, "
            "the observations are shown.",
        ),
        (
            ("nowhere::nothing",),
            "the default dispatcher has no operator 'nowhere::nothing'; those of a "
            "scenario are shown by the scenario's name or path, see `everyorder show "
            "--help`.",
        ),
        (
            ("other/test_broken.py",),
            "'other/test_broken.py' could not be loaded: other/test_broken.py:1: "
            "ModuleNotFoundError: No module named 'none_such'",
        ),
        (("empty",), "there are no scenarios in empty"),
    ],
)
def test_mistakes(project: Project, arguments: tuple[str, ...], message: str) -> None:
    project.write("other/test_broken.py", "import none_such\n")
    (project.root / "empty").mkdir()
    result = project.run("show", *arguments)
    assert unwrapped(result).endswith(f"Error: {message}")
    assert result.exit_code == exits.REFUSED


@pytest.mark.usefixtures("last")
def test_operators_have_no_states(project: Project) -> None:
    result = project.run("show", "demo::foo", "--state", "1")
    assert result.output.endswith("Error: --state and --trace need a scenario\n")


def test_built_in_operators_are_loaded_first(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(importlib, "import_module", loaded.append)
    monkeypatch.setattr(show_command, "find_spec", lambda name: name)
    project.run("show", "nowhere::nothing")
    assert loaded == ["everyorder.runtime.operators"]


@pytest.mark.usefixtures("last")
def test_an_operator_of_the_default_dispatcher(project: Project) -> None:
    from everyorder.runtime import Library

    with Library("everyorder_show", "FRAGMENT", origin="here") as library:
        library.define("foo(Tensor x) -> Tensor")
        text = project.text("show", "everyorder_show::foo", "--table")
        near = project.text("show", "everyorder_show::fo")
    assert text.startswith("-- state\nname: everyorder_show::foo\n")
    assert "\n-- table\n" in text
    assert " ".join(near.split()).endswith("did you mean everyorder_show::foo?")
