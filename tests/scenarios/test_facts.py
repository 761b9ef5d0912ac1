"""The facts that upstream's own tests pin, each with the scenario that pins it here."""

import pytest

from everyorder.harness.scenario import Scenario
from tests.scenarios import of_files

# What upstream's tests of its dispatcher pin -> the scenarios that show it.
FACTS: dict[str, tuple[str, ...]] = {
    "the laws hold for every operator": ("test_larger/every_kind_of_key",),
    "a definition and kernels at CI, CPU, Autograd and AutogradCPU commute": (
        "test_composites/founding_five",
    ),
    "a mismatch is the same from both sides and leaves the state before": (
        "test_mismatches/number_of_arguments",
        "test_mismatches/type_of_an_argument",
        "test_mismatches/number_of_results",
        "test_mismatches/type_of_a_result",
    ),
    "a name and a kernel define: inferred schema, CONSERVATIVE, kernel at CI": (
        "test_inference/name_and_kernel",
    ),
    "a definition without kernels": ("test_definitions/definition_only",),
    "kernels without a definition": ("test_definitions/kernels_only",),
    "CI, CPU, XLA, Autograd and AutogradCPU: each key by its rule": (
        "test_autograd/guards_and_alias",
    ),
    "CPU and CI: AutogradCPU falls through": (
        "test_composites/cpu_and_composite",
        "test_autograd/autogradcpu_falls_through",
    ),
    "CI alone fills Undefined, backends and autograd": (
        "test_composites/composite_alone",
    ),
    "CPU and CI side by side": ("test_composites/cpu_and_composite",),
    "Autograd alone fills autograd keys only": ("test_autograd/autograd_alone",),
    "a CPU kernel sends AutogradCPU to the Autograd kernel, the rest to CI": (
        "test_composites/cpu_autograd_and_composite",
    ),
    "FPGA and CI: AutogradOther is ambiguous": ("test_composites/ambiguous_other",),
    "CPU and CE: autograd keys keep their fallbacks": (
        "test_composites/cpu_and_default_backend",
    ),
    "CPU, CE and Autograd: autograd keys get the Autograd kernel, FPGA gets CE": (
        "test_composites/cpu_autograd_and_default_backend",
    ),
    "CE comes before CI everywhere": (
        "test_composites/cpu_autograd_and_two_composites",
        "test_composites/two_composites",
    ),
    "a second definition is refused": ("test_mismatches/second_definition",),
    "an explicit alias analysis kind is dumped": ("test_definitions/pure_function",),
    "a second definition is refused whatever the kinds": (
        "test_mismatches/second_definition_of_another_kind",
    ),
    "a second fallback of a key is refused": ("test_fallbacks/one_fallback_a_key",),
    "of two CI kernels the newer is active, the older inactive": (
        "test_duplicates/two_composites_of_one_key",
    ),
    "implementations without a definition are listed as dangling": (
        "test_uses/dangling",
    ),
    "a key that does not exist is reported": ("test_uses/registrations_for_a_key",),
    "teaching table: CPU, XLA, Lazy and CI": ("test_autograd/three_guards",),
    "teaching table: CI beside a kernel at AutogradCPU": (
        "test_autograd/cpu_composite_and_autogradcpu",
    ),
    "teaching table: CE beside a kernel at AutogradCPU": (
        "test_autograd/default_backend_guards_all",
    ),
    "teaching table: several backends behind AutogradOther": (
        "test_autograd/backends_of_autogradother",
    ),
    "a kernel that may not override is refused": ("test_duplicates/no_override",),
    "CE and CI together are data here, not an error of a tool": (
        "test_composites/three_composites",
    ),
    "an operator without a quantized kernel says so": (
        "test_backends/quantized_is_missing",
    ),
}

NAMED = sorted({path for paths in FACTS.values() for path in paths})


@pytest.fixture(scope="module")
def catalogue() -> dict[str, Scenario]:
    return of_files.catalogue()


@pytest.mark.parametrize("path", NAMED)
def test_scenario_exists(path: str, catalogue: dict[str, Scenario]) -> None:
    assert f"scenarios/{path}" in catalogue


def test_catalogue_is_large(catalogue: dict[str, Scenario]) -> None:
    assert len(catalogue) >= 75


def test_no_two_scenarios_are_the_same(catalogue: dict[str, Scenario]) -> None:
    seen: dict[str, str] = {}
    for scenario in catalogue.values():
        assert seen.setdefault(scenario.digest, scenario.path) == scenario.path
