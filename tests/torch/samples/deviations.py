"""Which differences from torch are meant, and which are defects.

Rules:
- every difference that the samples show belongs to a row here, or is a failure; a row
  that no difference belongs to any more is a failure as well;
- a `Deviation` is meant, or says what is not offered; its reason says why;
- a `Defect` is a wrong answer, or a refusal that nobody wants; it goes when it is
  mended; an expression shows it, with `m`, the module, and `F`, where its functions of
  networks are;
- each `Deviation` names the row of `docs/deviations.toml` that it belongs to;
- rows are as narrow as the words allow: a new difference of an operator that is named
  here is not covered by what was known of it.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.torch.samples.running import Difference

ANY = ("*",)


@dataclass(frozen=True, slots=True)
class Deviation:
    """Differences of one kind whose words and call contain `words`, and the reason.

    `words` are parts with ` ... ` between them, each of which must be there;
    `row` is the one of the table of deviations that it belongs to.
    """

    operators: tuple[str, ...]
    kind: str
    words: str
    reason: str
    row: str

    def covers(self, found: Difference) -> bool:
        return (
            found.kind == self.kind
            and (found.operator in self.operators or self.operators == ANY)
            and all(
                part in f"{found.words} | {found.call}"
                for part in self.words.split(" ... ")
            )
        )


@dataclass(frozen=True, slots=True)
class Defect(Deviation):
    """Likewise, what is to be mended; `shown` differs between the two modules."""

    shown: str


Row = Deviation | Defect


@dataclass(slots=True)
class Verdict:
    """The differences of a run, by row."""

    counts: Counter[Row] = field(default_factory=Counter)
    unlisted: list[Difference] = field(default_factory=list)
    # (row, operator): nothing belongs to it.
    stale: list[tuple[Row, str]] = field(default_factory=list)


def judged(found: Iterable[Difference], rows: tuple[Row, ...]) -> Verdict:
    """Every difference with the first row that covers it; stale is what covers none."""
    verdict, seen = Verdict(), set()
    for each in found:
        row = next((row for row in rows if row.covers(each)), None)
        if row is None:
            verdict.unlisted.append(each)
            continue
        verdict.counts[row] += 1
        seen.add((row, "*" if row.operators == ANY else each.operator))
    verdict.stale = [
        (row, name) for row in rows for name in row.operators if (row, name) not in seen
    ]
    return verdict


NUMBERS = (
    *("atan2", "eq", "ge", "gt", "le", "lt", "ne", "max_binary", "maximum"),
    *("min_binary", "minimum", "logical_and", "logical_or", "logical_xor"),
    *("remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor", "pow", "xlogy"),
    *("bitwise_left_shift", "bitwise_right_shift"),
)

_OF_TENSORS = "_tensor_overload"

DEVIATIONS: tuple[Row, ...] = (
    Deviation(
        NUMBERS,
        "accepted",
        "torch TypeError",
        "a number is taken for either operand, not only where torch has an overload",
        "a number for an operand of an operator of two",
    ),
    Deviation(
        ("cat",),
        "accepted",
        "out=float32[4, 6]",
        "what is read and written is copied first, so the result is what it says",
        "writes between partly overlapping tensors",
    ),
    Deviation(
        ("gather",),
        "accepted",
        "out=float64[",
        "`out=` takes every dtype that holds the result, as of other operators",
        "`out=` of another dtype",
    ),
    Deviation(
        ("roll",),
        "accepted",
        "runtime.roll(float32[5], ())",
        "no shifts shift nothing",
        "dimensions of a tensor that has none",
    ),
    Deviation(
        ("roll",),
        "accepted",
        "runtime.roll(float32[], 0, 0)",
        "a tensor without dimensions has dimension 0 for every operator",
        "dimensions of a tensor that has none",
    ),
    Deviation(
        ("linspace_tensor_overload", "logspace_tensor_overload"),
        "refused",
        "takes `Scalar`, but was given a Tensor",
        "bounds are numbers; reading them from tensors is left to the caller",
        "options that are left out: nuclear norms, `output_size` of "
        "`repeat_interleave`, tensors as bounds of `linspace`",
    ),
    Deviation(
        ("nn_functional_conv1d", "nn_functional_conv2d"),
        "refused",
        "does not take `input` of dtype int64",
        "convolutions of integers are not offered",
        "integers in convolutions and in means of windows",
    ),
    Deviation(
        ("nn_functional_avg_pool2d",),
        "refused",
        "does not take `self` of dtype int64",
        "means of integers are not offered, as of `mean`",
        "integers in convolutions and in means of windows",
    ),
    Deviation(
        ("nn_functional_batch_norm",),
        "refused",
        "input has no channels",
        "channels are the second dimension, and one dimension has no second",
        "`batch_norm` of one dimension",
    ),
    Deviation(
        ("norm_nuc",),
        "refused",
        "does not take 'nuc'",
        "there are no singular values",
        "options that are left out: nuclear norms, `output_size` of "
        "`repeat_interleave`, tensors as bounds of `linspace`",
    ),
    Deviation(
        ("repeat_interleave",),
        "refused",
        "no argument `output_size`",
        "a hint that spares a synchronisation; the size is known here",
        "options that are left out: nuclear norms, `output_size` of "
        "`repeat_interleave`, tensors as bounds of `linspace`",
    ),
    Deviation(
        ("gather",),
        "refused",
        "dtype uint8",
        "torch takes empty indices of any dtype; here the dtype alone decides",
        "an index without elements, of another dtype",
    ),
    Deviation(
        ("sum_to_size",),
        "dtype",
        "Tensor.sum_to_size(bool[], ())",
        "where nothing is summed the tensor itself is the result",
        "`sum_to_size` where nothing is summed",
    ),
    Deviation(
        ("nonzero", "linalg_inv", "linalg_cholesky", "linalg_qr", "linalg_solve"),
        "strides",
        "",
        "results that are not computed element by element lie row by row",
        "how results lie that are not computed element by element",
    ),
    Deviation(
        ("cat",),
        "strides",
        "/[8, 1, 4, 2]",
        "results that are not computed element by element lie row by row",
        "how results lie that are not computed element by element",
    ),
    Deviation(
        ("nn_functional_max_pool2d",),
        "strides",
        "]/[",
        "results that are not computed element by element lie row by row",
        "how results lie that are not computed element by element",
    ),
    Deviation(
        ("unique",),
        "strides",
        "dim=",
        "results that are not computed element by element lie row by row",
        "how results lie that are not computed element by element",
    ),
    Deviation(
        ("baddbmm",),
        "strides",
        "[25, 1, 5], torch [25, 5, 1]",
        "the product is added to its first operand, whose dense strides are kept",
        "how results lie that are not computed element by element",
    ),
    Deviation(
        ("topk",),
        "values",
        "result 1: ... .topk(int64[",
        "which of equal elements comes first is not said",
        "which of equal elements `topk` finds first",
    ),
    Deviation(
        ("nn_functional_layer_norm",),
        "gradient values",
        "runtime.layer_norm(float32[1], (1,)",
        "of one element the gradient is zero, and what is left is rounding in both",
        "last digits of what cancels, or of large exponents",
    ),
    Deviation(
        ("nn_functional_group_norm",),
        "gradient values",
        "runtime.group_norm(float32[1, 2], 1)",
        "of two elements the gradient nearly cancels; torch is as far from it",
        "last digits of what cancels, or of large exponents",
    ),
    Deviation(
        ("logsumexp",),
        "gradient values",
        "[complex64]",
        "of exponents of thousands torch loses four digits in single precision",
        "last digits of what cancels, or of large exponents",
    ),
    Deviation(
        ("norm",),
        "gradient undefined",
        "0, -1) [",
        "the gradient of a count is zero, over one dimension as over all",
        "gradients that upstream does not have, or loses",
    ),
    Deviation(
        ("linalg_vector_norm",),
        "gradient undefined",
        "ord=0",
        "the gradient of a count is zero, over one dimension as over all",
        "gradients that upstream does not have, or loses",
    ),
    Deviation(
        ("linalg_qr", "linalg_slogdet"),
        "gradient refused",
        "",
        "there is no formula for orthogonal factors and for signs of complex numbers",
        "what `torch.linalg` computes on other devices, and gradients of its factors",
    ),
    Deviation(
        ("linalg_cholesky",),
        "gradient values",
        "[complex",
        "the gradient is that of a matrix that stays Hermitian, and is Hermitian",
        "the gradient of the Cholesky factor of complex matrices",
    ),
)


DEFECTS: tuple[Row, ...] = ()
