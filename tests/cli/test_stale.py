from harness.catalogue import load
from harness.cli.judgement import stale_files
from harness.cli.task import Effort, listed
from harness.expectations import Store
from tests.cli.conftest import SOUND, Project

TESTS = """

def test_function(explore): ...


class TestClass: ...
"""


def expect(project: Project, *names: str) -> None:
    for name in names:
        project.write(f"expect/{name}.txt", "")


def found(project: Project) -> tuple[str, ...]:
    return stale_files(Store(project.root), listed(load(), Effort()))


def test_what_no_scenario_stands_behind(project: Project) -> None:
    expect(
        project,
        "scenarios/test_sound/sound",
        "scenarios/test_sound/gone",
        "scenarios/test_gone/sound",
    )
    assert found(project) == ("scenarios/test_gone/sound", "scenarios/test_sound/gone")


def test_what_a_test_function_may_explore_is_spared(project: Project) -> None:
    project.scenarios("sound", SOUND + TESTS)
    expect(
        project,
        "scenarios/test_sound/test_function",
        "scenarios/test_sound/test_function-2",
        "scenarios/test_sound/test_function[a]",
        "scenarios/test_sound/TestClass/test_method",
        "scenarios/test_sound/test_functional",
    )
    assert found(project) == ("scenarios/test_sound/test_functional",)


def test_a_scenario_elsewhere_is_spared_while_its_variable_stands(
    project: Project,
) -> None:
    project.write("tests/other/test_far.py", "far = made = 1\nnear: int = hidden\n")
    expect(
        project,
        "other/test_far/far",
        "other/test_far/near",
        "other/test_far/hidden",
        "scenarios/test_sound/count",
        "scenarios/test_sound/made",
    )
    assert found(project) == ("other/test_far/hidden", "scenarios/test_sound/made")


def test_what_cannot_be_known_is_spared(project: Project) -> None:
    project.scenarios("broken", "import nothing_like_this\n")
    project.scenarios(
        "skips", "import pytest\npytest.skip('no', allow_module_level=True)"
    )
    project.write("tests/test_half.py", "def half(:")
    expect(
        project,
        "scenarios/test_broken/some",
        "scenarios/test_skips/some",
        "test_half/some",
        "scenarios/test_sound",
    )
    assert found(project) == ()
