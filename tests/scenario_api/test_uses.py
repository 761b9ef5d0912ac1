import pytest

from everyorder.harness import Scenario, explore
from everyorder.harness.scenario import PROBES, Step, call, define, impl, look_up
from everyorder.harness.scenario.effects import arguments_of, probe_tensor
from everyorder.harness.scenario.uses import answers
from everyorder.harness.systems.dispatcher import RecordingDispatcher
from everyorder.runtime.dispatch import OperatorHandle
from everyorder.runtime.dispatch.registration_record import read_definition
from everyorder.runtime.errors.registration import LookupFailed
from everyorder.runtime.keys import KeySet
from everyorder.runtime.schema import parse_name, parse_schema
from tests.coded import code
from tests.scenarios.kernels import broken, composed, nothing_useful, on_cpu


def registered(*steps: Step) -> tuple[RecordingDispatcher, list[object]]:
    target = RecordingDispatcher()
    performs = [s.prepare(target, f"step {n}") for n, s in enumerate(steps, 1)]
    return target, [*performs, *[perform() for perform in performs]]


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("cpu", "CPU, ADInplaceOrView, AutogradCPU, AutocastCPU"),
        ("cpu below autograd", "CPU, AutocastCPU"),
        ("mkldnn", "MkldnnCPU, ADInplaceOrView, AutogradOther"),
        ("CPU+Tracer", "CPU, Tracer"),
    ],
)
def test_probe_tensor(kind: str, keys: str) -> None:
    made = probe_tensor(kind)
    assert made.kind == kind
    assert str(KeySet.from_bits(made.key_bits)) == f"KeySet({keys})"
    assert probe_tensor(kind) is made


def test_probe_of_an_unknown_key() -> None:
    with pytest.raises(LookupFailed, check=code("UnknownKey")):
        probe_tensor("CPU+Nothing")


def test_arguments_for_every_kind_of_parameter() -> None:
    schema = parse_schema(
        "a::b(Tensor x, Tensor? y, Tensor[] z, Tensor?[] w, int n, SymInt s, float f,"
        " bool c, str t, Scalar q, complex j, Device d, int[] i, Generator? g,"
        " int k=1, *, int m) -> ()"
    )
    reading = read_definition(schema, "here")
    cpu = probe_tensor("cpu")
    assert arguments_of(reading, cpu) == (
        (
            *(cpu, cpu, [cpu], [cpu], 1, 1, 1.0),
            *(True, "text", 1, 1j, "cpu", [1], None),
        ),
        {"m": 1},
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "*, Tensor a",
        "Tensor a, Dict(str, int) b",
        "Tensor a, Stream s",
        "Tensor a=None",
    ],
)
def test_calls_of_any_arguments_break_no_law(arguments: str) -> None:
    scenario = Scenario(
        define(f"a::b({arguments}) -> ()"),
        impl("a::b", on_cpu, "CPU"),
        uses=[call("a::b")],
    )
    assert explore(scenario, "histories:2").verdict in ("holds", "vacuous")


def test_a_call_answers_with_the_kernels_that_ran() -> None:
    target, held = registered(
        define("a::b(Tensor x) -> Tensor"), impl("a::b", on_cpu, "CPU")
    )
    assert call("a::b").perform(target) == "on_cpu (step 2)"
    assert call("a::b", "cuda").perform(target) == "MissingKernel: no kernel"
    assert len(held) == 4


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((), "OperatorGone"),
        ((impl("a::b", on_cpu),), "CallWithoutSchema"),
        ((define("a::b() -> ()"),), "MissingKernel: no tensor arguments"),
        (
            (define("a::b(Tensor x) -> Tensor", kernel=broken),),
            "broken (step 1) > raises ArithmeticError",
        ),
        (
            (define("a::b(Tensor x) -> Tensor", kernel=nothing_useful),),
            "nothing_useful (step 1) > WrongReturnType",
        ),
    ],
)
def test_a_call_answers_with_the_error(steps: tuple[Step, ...], expected: str) -> None:
    target, _held = registered(*steps)
    assert call("a::b").perform(target) == expected


def test_a_kernel_of_nobody_is_told_as_such() -> None:
    target, _held = registered(define("a::b(Tensor x) -> Tensor"))
    step = impl("a::b", composed)
    del target.recorder.labels[:]
    recorder = target.recorder
    try:
        # Without a recorder at hand when it is prepared, a kernel is not recorded.
        del target.recorder
        perform = step.prepare(target, "step 2")
    finally:
        target.recorder = recorder
    perform()
    assert call("a::b").perform(target) == "ran no step's kernel"


def test_answers_of_one_call_do_not_leak_into_the_next() -> None:
    target, _held = registered(
        define("a::b(Tensor x) -> Tensor"), impl("a::b", on_cpu, "CPU")
    )
    handle = OperatorHandle(target, parse_name("a::b"))
    assert answers(target, handle, ("cpu", "meta", "cpu")) == [
        ("cpu", "on_cpu (step 2)"),
        ("meta", "MissingKernel: no kernel"),
        ("cpu", "on_cpu (step 2)"),
    ]
    assert answers(target, handle, ()) == []


def test_look_up() -> None:
    target, _held = registered(define("a::b(Tensor x) -> Tensor"))
    assert look_up("a::b").perform(target) == "a::b(Tensor x) -> Tensor"
    assert look_up("a::c").perform(target) == "None"


def test_texts_and_operators() -> None:
    assert call("a::b", "meta").text == 'call("a::b", "meta")'
    assert call("a::b").text == 'call("a::b", "cpu")'
    assert look_up("a::b.c").text == 'look_up("a::b.c")'
    assert call("a::b").operators == look_up("a::b").operators == ("a::b",)


def test_every_probe_names_keys_that_exist() -> None:
    assert all(probe_tensor(kind).key_bits for kind in PROBES)
