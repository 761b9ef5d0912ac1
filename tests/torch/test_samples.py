"""Upstream's samples through the runtime, and that faults of either are found."""

import faulthandler
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from tests.tools.deviations import DEVIATIONS as TABLE

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

from tests.torch.samples import running  # noqa: E402  # needs torch
from tests.torch.samples.comparing import differences  # noqa: E402  # needs torch
from tests.torch.samples.converting import (  # noqa: E402  # needs torch
    Converter,
    NoCounterpart,
    array,
    written,
)
from tests.torch.samples.deviations import (  # noqa: E402  # needs torch
    ANY,
    DEFECTS,
    DEVIATIONS,
    Defect,
    Deviation,
    judged,
)
from tests.torch.samples.loading import Form  # noqa: E402  # needs torch
from tests.torch.samples.report import Run, text  # noqa: E402  # needs torch
from tests.torch.samples.running import Difference, Tally  # noqa: E402  # needs torch

# Seconds; compiling all kernels on a busy machine took 400.
LIMIT = 1200
ROOT = Path(__file__).parents[2]
F = torch.nn.functional


def test_samples() -> None:
    """All of torch's table, in a process of its own: its import changes settings."""
    # Where no kernel is compiled yet it takes minutes, and has a limit of its own.
    faulthandler.cancel_dump_traceback_later()
    done = subprocess.run(
        [sys.executable, "-m", "tests.torch.samples"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    print(done.stdout)
    last = done.stdout.splitlines()[-1:]
    assert last == ["failures: 0 unlisted differences, 0 rows that no longer occur"], (
        done.stderr
    )
    assert done.returncode == 0


def of(value: Any) -> tuple[str, Any]:
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return str(value.dtype).removeprefix("torch."), value.tolist()
    if isinstance(value, tuple):
        return "tuple", [of(each) for each in value]
    return type(value).__name__, value


@pytest.mark.parametrize("row", DEFECTS, ids=lambda row: f"{row.operators[0]}")
def test_defects_are_shown_by_their_expressions(row: Defect) -> None:
    # Errors differ if only one is of the class that torch raises.
    raised = IndexError if "torch IndexError" in row.words else RuntimeError

    def outcome(m: Any, functions: Any) -> tuple[str, Any]:
        try:
            return of(eval(row.shown, {"m": m, "F": functions}))
        except Exception as error:
            return "raises", isinstance(error, raised)

    assert outcome(runtime, runtime) != outcome(torch, F)


# --- what is compared -----------------------------------------------------------------


def kinds(ours: Any, theirs: Any) -> list[str]:
    return [kind for kind, _ in differences(ours, theirs)]


def test_the_same() -> None:
    ours, theirs = runtime.tensor([1.0, float("nan")]), torch.tensor([1, float("nan")])
    assert kinds(ours, theirs) == []
    assert kinds((ours, 2), [theirs, 2]) == []
    assert kinds(float("nan"), float("nan")) == []
    assert kinds(runtime.ones(1, 3).t(), torch.ones(3, 1)) == []


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (runtime.ones(2), torch.ones(3), "shape"),
        (runtime.ones(2), torch.ones(2).double(), "dtype"),
        (runtime.ones(2, 3).t(), torch.ones(3, 2), "strides"),
        (runtime.tensor([1.0, 2.0]), torch.tensor([1.0, 2.001]), "values"),
        (runtime.tensor([float("nan")]), torch.tensor([1.0]), "values"),
        (runtime.tensor([float("inf")]), torch.tensor([-float("inf")]), "values"),
        (runtime.tensor([3]), torch.tensor([4]), "values"),
        (runtime.tensor([0.0, 1e-3]), torch.tensor([1.0, 2e-3]), "values"),
        (runtime.ones(1), (torch.ones(1), torch.ones(1)), "number of results"),
        (runtime.ones(1), 1.0, "type"),
        (True, False, "values"),
        (float("nan"), 1.0, "values"),
        (1, True, "type"),
        (runtime.ones(1), torch.ones(1).requires_grad_(), "requires_grad"),
    ],
)
def test_each_kind_of_difference(ours: Any, theirs: Any, kind: str) -> None:
    assert kinds(ours, theirs) == [kind]


def test_what_cancels_is_as_inexact_as_its_addends() -> None:
    theirs = torch.tensor([1000.0, 0.0])
    assert kinds(runtime.tensor([1000.0, 1e-3]), theirs) == []
    assert kinds(runtime.tensor([1000.0, 1e-1]), theirs) == ["values"]


# --- what is converted ----------------------------------------------------------------


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12.0).reshape(3, 4).t(),
        torch.arange(12)[3:].as_strided((2, 2), (4, 1), 5),
        torch.ones(3).expand(2, 3),
        torch.zeros(0, 3),
        torch.tensor(2.5).bfloat16(),
        torch.tensor([1 + 2j]).conj(),
    ],
)
def test_tensors_keep_their_layout(tensor: Any) -> None:
    made = Converter()(tensor)
    assert kinds(made, tensor) == []
    assert made.stride() == tensor.stride()
    assert made.storage_offset() == tensor.storage_offset()
    if tensor.numel() and not tensor.is_conj() and tensor.dtype != torch.bfloat16:
        assert array(made).ctypes.data != array(tensor).ctypes.data


def test_arguments() -> None:
    convert, tensor = Converter(), torch.ones(2).requires_grad_()
    made = convert({"a": [tensor, (tensor, torch.float64)], "s": slice(tensor, 1)})
    assert made["a"][0] is made["a"][1][0] is made["s"].start
    assert made["a"][0].requires_grad
    assert made["a"][0].is_leaf
    assert made["a"][1][1] is runtime.float64
    assert convert(torch.channels_last) is runtime.channels_last
    assert convert(torch.Size((2, 3))) == (2, 3)
    assert convert(torch.device("cpu")) == runtime.device("cpu")


@pytest.mark.parametrize(
    "value", [torch.ones(2).to_sparse(), torch.ones(1, device="meta"), object()]
)
def test_no_counterpart(value: Any) -> None:
    with pytest.raises(NoCounterpart):
        Converter()(value)


def test_arguments_in_words() -> None:
    tensor = torch.ones(2, 3).t()
    assert (
        written([tensor, (1,), 0.25, None])
        == "[float32[3, 2]/[1, 3], (1,), 0.25, None]"
    )


# --- what is found --------------------------------------------------------------------


def sample(value: Any, *args: Any) -> Any:
    return SimpleNamespace(input=value, args=args, kwargs={}, broadcasts_input=False)


def row(**changes: Any) -> Any:
    """A row of the table for `neg`, in float32, with one error input."""

    def samples(device: str, dtype: Any, requires_grad: bool, set_seed: bool) -> Any:
        return [sample(torch.randn(2, 3).requires_grad_(requires_grad))]

    made: dict[str, Any] = {
        "name": "neg",
        "formatted_name": "neg",
        "aliases": (),
        "op": torch.neg,
        "supports_autograd": True,
        "supported_dtypes": lambda device: {torch.float32},
        "supported_backward_dtypes": lambda device: {torch.float32},
        "sample_inputs": samples,
        "get_inplace": lambda: torch.Tensor.neg_,
        "error_inputs_func": True,
        "error_inputs": lambda device: [
            SimpleNamespace(sample_input=sample(torch.tensor([True])))
        ],
    }
    return SimpleNamespace(**{**made, **changes})


def with_wrong_gradient(x: Tensor) -> Tensor:
    wrong: Tensor = -x + (x.detach() - x) * 0.5
    return wrong


def raises(error: Exception) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        raise error

    return run


def test_a_row_without_differences() -> None:
    tally = Tally()
    assert list(running.run(row(), tally)) == []
    # As a function and as a method.
    assert tally.tried == {"values": 2, "gradients": 2, "in place": 1, "refusals": 1}
    assert tally.equal == tally.tried


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        (lambda x: x + 0, ["values", "accepted"]),
        (with_wrong_gradient, ["gradient values"]),
        (lambda x: -x.detach(), ["requires_grad"]),
        (lambda x: (-x).double(), ["dtype"]),
        (lambda x: x.nonsense, ["crash", "crash"]),
        (raises(KeyError("x")), ["crash", "crash"]),
        (raises(ValueError("zip()")), ["crash", "crash"]),
        (lambda x, y: x, ["refused", "error type"]),
    ],
)
def test_planted_faults_are_found(
    planted: Callable[..., Any], found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "forms", lambda row: (Form("planted", planted),))
    tally = Tally()
    differences = list(running.run(row(get_inplace=lambda: None), tally))
    assert [each.kind for each in differences] == found
    assert sum(tally.tried.values()) - sum(tally.equal.values()) == len(found)


@pytest.mark.parametrize(
    ("planted", "found"),
    [(lambda x: -x, ["in place"]), (lambda x: x.mul_(2), ["values"])],
)
def test_planted_faults_of_writing_are_found(
    planted: Callable[..., Any], found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "in_place", lambda row: Form("planted_", planted))
    differences = running.run(row(error_inputs_func=None), Tally())
    assert [each.kind for each in differences] == found


def test_many_samples_are_bounded_the_same_way_each_time() -> None:
    def many(device: str, dtype: Any, requires_grad: bool, set_seed: bool) -> Any:
        return [sample(torch.randn(1)) for _ in range(100)]

    tally = Tally()
    chosen = running.Sampled(row(sample_inputs=many), torch.float32, tally).samples()
    again = running.Sampled(row(sample_inputs=many), torch.float32, tally).samples()
    assert [one.input.item() for one in chosen] == [one.input.item() for one in again]
    assert len(chosen) == running.SAMPLES
    assert tally.bounded == {"neg": (2 * running.SAMPLES, 200)}


def test_unwritten_memory_of_samples_holds_one_value() -> None:
    """Else it is chance by which of two errors an error input is refused."""
    seen = []

    def unwritten(device: str, *dtype: Any, **_: Any) -> list[Any]:
        seen.append(torch.empty(2, device=device))
        return []

    made = row(sample_inputs=unwritten, error_inputs=unwritten)
    assert list(running.run(made, Tally())) == []
    assert [each.isnan().all().item() for each in seen] == [True, True]
    assert not torch.are_deterministic_algorithms_enabled()


def test_what_two_processes_counted_is_added() -> None:
    tally, more = Tally(), Tally()
    tally.tried.update(values=3, gradients=1)
    tally.bounded.update(f=(24, 100))
    more.tried.update(values=2)
    more.equal.update(values=1)
    more.complex_refused.update(f=1)
    more.skipped.update({"refused by torch": 4})
    more.bounded.update(f=(4, 50), g=(24, 30))
    tally.add(more)
    assert tally == Tally(
        Counter(values=5, gradients=1),
        Counter(values=1),
        Counter(f=1),
        Counter({"refused by torch": 4}),
        {"f": (28, 150), "g": (24, 30)},
    )


# --- what is judged -------------------------------------------------------------------

WRONG = Difference("f", "values", "1 of 2", "runtime.f(1)")
OTHER = Difference("g", "values", "1 of 2", "runtime.g(1)")


def test_unlisted_and_stale() -> None:
    known = Deviation(("f", "h"), "values", "1 of", "because", "row")
    verdict = judged([WRONG, WRONG, OTHER], (known,))
    assert verdict.counts == {known: 2}
    assert verdict.unlisted == [OTHER]
    assert verdict.stale == [(known, "h")]


@pytest.mark.parametrize(
    "narrow",
    [
        Deviation(("g",), "values", "", "another operator", "row"),
        Deviation(("f",), "strides", "", "another kind", "row"),
        Deviation(("f",), "values", "2 of 2", "other words", "row"),
        Deviation(("f",), "values", "1 of 2 ... runtime.g", "another call", "row"),
    ],
)
def test_rows_cover_no_more_than_they_say(narrow: Deviation) -> None:
    verdict = judged([WRONG], (narrow,))
    assert verdict.unlisted == [WRONG]
    assert verdict.stale == [(narrow, *narrow.operators)]


def test_what_is_meant_is_in_the_table_of_deviations() -> None:
    meant = {each.what for each in TABLE}
    assert {each.row for each in DEVIATIONS} <= meant


def test_rows_of_all_operators() -> None:
    every = Deviation(ANY, "values", "of ... (1)", "all", "row")
    assert judged([WRONG, OTHER], (every,)).stale == []
    assert judged([], (every,)).stale == [(every, "*")]


def test_report() -> None:
    known = Deviation(("f",), "values", "1 of", "because", "row")
    defect = Defect(("h",), "values", "", "wrong", "row", "m.h()")
    verdict = judged([WRONG, OTHER], (known, defect))
    tally = Tally()
    tally.tried.update(values=3)
    tally.equal.update(values=1)
    tally.bounded["f"] = (24, 100)
    tally.skipped["refused by torch"] = 2
    tally.complex_refused["f"] = 5
    run = Run(9, 2, ("k",), tally, verdict)
    assert run.failed
    assert text(run).splitlines() == [
        "operators: 2 of 9 rows of torch's table",
        "values: 3 tried, 1 equal",
        "deviations: 1 differences in 1 rows",
        "  values: 1",
        "    1 f (1 of): because",
        "defects: 0 differences in 0 rows",
        "bounded to 24 samples of a dtype, 4 of other forms: 1 rows",
        "  f: 24 of 100",
        "not compared:",
        "  refused by torch: 2",
        "no complex numbers, by samples:",
        "  f 5",
        "lacking: 1",
        "  k",
        "unlisted: g, values: 1",
        "  runtime.g(1)",
        "    1 of 2",
        "no longer occurs: h, values ()",
        "failures: 1 unlisted differences, 1 rows that no longer occur",
    ]
