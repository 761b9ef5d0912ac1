"""Every sample of torch's table through torch and the runtime, one row at a time.

True only here: which samples are run, in which forms, and what counts as a difference.

How it works: `run(row)` makes the samples of each dtype with a seed of its own, draws
some where there are many, calls torch, then each form of the runtime with
the same arguments, and yields a `Difference` for everything that is not the same.  Then
it takes gradients of both with one random cotangent, and last the error inputs, which
both must refuse.  It judges nothing: that is `deviations`.

A refusal of the runtime is a difference, but for complex numbers where the runtime says
that the operator is not defined for the dtype: those are counted by operator.
"""

import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from everyorder.runtime.autograd import grad
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.errors.tensor import DTypeRefused
from tests.torch.samples.comparing import Found, differences, of_tensors
from tests.torch.samples.converting import (
    Converter,
    NoCounterpart,
    listed,
    tensors,
    written,
)
from tests.torch.samples.loading import Form, forms, in_place

DTYPES = (
    *(torch.float32, torch.float64, torch.int64, torch.bool),
    *(torch.complex64, torch.complex128),
)
# Samples of one row and dtype: most pairs of the table have fewer, and the others
# try products of options.
SAMPLES = 24
# Samples of one row and dtype that the other forms run, too: they are the same code
# below the binding of arguments.
OTHER_FORMS = 4
# Results with any values: random numbers, and memory that nobody has written to.
ANY_VALUES = frozenset(
    (
        *("bernoulli", "multinomial", "rand_like", "randint", "randn", "randn_like"),
        *("empty", "empty_like", "new_empty", "nn.functional.dropout"),
    )
)
# What Python says itself of a call that does not fit.
BINDING = ("unexpected keyword", "positional argument", "missing", "multiple values")


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in torch; `words` say what, `call` where."""

    operator: str
    kind: str
    words: str
    call: str


@dataclass(slots=True)
class Tally:
    """What was tried, by kind of check; and what was not, with the reason."""

    tried: Counter[str] = field(default_factory=Counter)
    equal: Counter[str] = field(default_factory=Counter)
    complex_refused: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    bounded: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, other: "Tally") -> None:
        """Count what another has counted."""
        for mine, its in (
            (self.tried, other.tried),
            (self.equal, other.equal),
            (self.complex_refused, other.complex_refused),
            (self.skipped, other.skipped),
        ):
            mine.update(its)
        for name, (some, many) in other.bounded.items():
            before = self.bounded.get(name, (0, 0))
            self.bounded[name] = before[0] + some, before[1] + many


def run(row: Any, tally: Tally) -> Iterator[Difference]:
    """All differences of one row of torch's table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            if dtype in row.supported_dtypes("cpu"):
                yield from Sampled(row, dtype, tally).run()
        if row.error_inputs_func is not None:
            yield from refusals(row, tally)


class Call:
    """A call of the runtime, its arguments converted."""

    def __init__(self, way: Form, first: Any, rest: Any, keywords: Any) -> None:
        self.run, self.convert = way.run, Converter()
        self.arguments = self.convert(first), *self.convert(tuple(rest))
        self.keywords = self.convert(keywords)

    def __call__(self) -> Any:
        return self.run(*self.arguments, **self.keywords)


class Sampled:
    """The samples of one row in one dtype."""

    def __init__(self, row: Any, dtype: Any, tally: Tally) -> None:
        self.row, self.dtype, self.tally = row, dtype, tally
        self.values = row.name not in ANY_VALUES
        self.differentiable = row.supports_autograd and (
            dtype in row.supported_backward_dtypes("cpu")
        )

    def run(self) -> Iterator[Difference]:
        ways = forms(self.row)
        writing = in_place(self.row)
        for index, sample in enumerate(self.samples()):
            for way in ways if index < OTHER_FORMS else ways[:1]:
                yield from self.compare(way, sample)
            if writing is not None and index < OTHER_FORMS:
                yield from self.write(writing, sample)

    def samples(self) -> list[Any]:
        """All samples, or some drawn from them, the same ones each time."""
        seed()
        # The table would seed before each sample, which gives all the same numbers.
        with filled():
            every = list(
                self.row.sample_inputs(
                    "cpu", self.dtype, requires_grad=self.differentiable, set_seed=False
                )
            )
        if len(every) <= SAMPLES:
            return every
        before = self.tally.bounded.get(self.row.formatted_name, (0, 0))
        name = self.row.formatted_name
        self.tally.bounded[name] = (before[0] + SAMPLES, before[1] + len(every))
        # Not every n-th: products of options repeat themselves, and n may divide them.
        kept = sorted(random.Random(0).sample(range(len(every)), SAMPLES))
        return [every[index] for index in kept]

    def compare(self, way: Form, sample: Any) -> Iterator[Difference]:
        if way.method and not isinstance(sample.input, torch.Tensor):
            return
        # Before torch runs, which may write to its arguments.
        call = self.prepared(way, sample.input, sample.args, sample.kwargs)
        if call is None:
            return
        seed()
        try:
            expected = self.row.op(sample.input, *sample.args, **sample.kwargs)
        except (RuntimeError, TypeError, ValueError, IndexError):
            self.tally.skipped["refused by torch"] += 1
            return
        values = self.values and not sample.kwargs.get("dropout_p")

        def found() -> Found:
            result = call()
            wrong = list(differences(result, expected, values=values))
            yield from wrong
            if self.differentiable and values and telling(wrong):
                yield from self.pulled_back(call.convert, sample, result, expected)

        yield from self.settle(way, sample, "values", found)

    def prepared(self, way: Form, *arguments: Any) -> "Call | None":
        """The call with arguments of the runtime; None if there are none such."""
        try:
            return Call(way, *arguments)
        except NoCounterpart as error:
            self.tally.skipped[f"no counterpart of {error}"] += 1
            return None

    def pulled_back(
        self, convert: Converter, sample: Any, result: Any, expected: Any
    ) -> Found:
        worse = list(gradients(convert, sample, result, expected))
        self.tally.tried["gradients"] += 1
        self.tally.equal["gradients"] += not worse
        yield from worse

    def write(self, way: Form, sample: Any) -> Iterator[Difference]:
        if sample.broadcasts_input or not isinstance(sample.input, torch.Tensor):
            return
        target = sample.input.detach().clone()
        arguments, keywords = detached(tuple(sample.args)), detached(sample.kwargs)
        call = self.prepared(way, target, arguments, keywords)
        if call is None:
            return
        try:
            seed()
            expected = self.row.get_inplace()(target, *arguments, **keywords)
        except (RuntimeError, TypeError, ValueError, IndexError):
            return

        def found() -> Found:
            result = call()
            if result is not call.arguments[0]:
                yield "in place", "another tensor is returned"
            yield from differences(result, expected, values=self.values)

        yield from self.settle(way, sample, "in place", found)

    def settle(
        self, way: Form, sample: Any, check: str, found: Callable[[], Found]
    ) -> Iterator[Difference]:
        """The differences that a check finds, its errors among them, counted."""
        try:
            wrong = list(found())
        except DTypeRefused as error:
            if self.dtype.is_complex:
                self.tally.complex_refused[self.row.formatted_name] += 1
                return
            wrong = [told(error)]
        except Exception as error:
            wrong = [told(error)]
        self.tally.tried[check] += 1
        # Gradients are counted by themselves.
        self.tally.equal[check] += all(k.startswith("gradient") for k, _ in wrong)
        for kind, words in wrong:
            yield Difference(
                self.row.formatted_name, kind, words, shown(way, self.dtype, sample)
            )


def telling(wrong: list[tuple[str, str]]) -> bool:
    """Whether gradients of such results can be compared."""
    return all(kind == "strides" for kind, _ in wrong)


def gradients(convert: Converter, sample: Any, result: Any, expected: Any) -> Found:
    """The differences of first gradients, by one random cotangent for each result."""
    arguments = [sample.input, list(sample.args), sample.kwargs]
    leaves = {id(each): each for each in tensors(arguments) if each.requires_grad}
    roots = [
        (mine, its)
        for mine, its in zip(listed(result), listed(expected), strict=True)
        if isinstance(its, torch.Tensor) and its.requires_grad
    ]
    if not roots or not leaves:
        return
    seed()
    cotangents = [torch.randn_like(its.detach()) for _, its in roots]
    theirs = torch.autograd.grad(
        [its for _, its in roots], list(leaves.values()), cotangents, allow_unused=True
    )
    try:
        ours = grad(
            [mine for mine, _ in roots],
            [convert(leaf) for leaf in leaves.values()],
            [Converter()(each) for each in cotangents],
            allow_unused=True,
        )
    except Exception as error:
        kind, words = told(error)
        yield f"gradient {kind}", words
        return
    for mine, its in zip(ours, theirs, strict=True):
        if mine is None or its is None:
            if mine is not its:
                yield "gradient undefined", f"{mine is None}, torch {its is None}"
            continue
        for kind, words in of_tensors(mine, its):
            # How a gradient lies in memory is nobody's business.
            if kind != "strides":
                yield f"gradient {kind}", words


def refusals(row: Any, tally: Tally) -> Iterator[Difference]:
    """The error inputs of a row that the runtime takes, or refuses by another error."""
    seed()
    way = forms(row)[0]
    with filled():
        wrong = list(row.error_inputs("cpu"))
    for each in wrong:
        sample = each.sample_input
        if way.method and not isinstance(sample.input, torch.Tensor):
            continue
        try:
            call = Call(way, sample.input, sample.args, sample.kwargs)
        except NoCounterpart as error:
            tally.skipped[f"no counterpart of {error}"] += 1
            continue
        try:
            row.op(sample.input, *sample.args, **sample.kwargs)
        except Exception as error:
            refusal = type(error)
        else:
            tally.skipped["error inputs that torch takes"] += 1
            continue
        kind = refused(call, refusal, tally)
        if kind is not None:
            words = shown(way, "error input", sample)
            yield Difference(row.formatted_name, *kind, words)


def refused(
    call: Call, refusal: type[Exception], tally: Tally
) -> tuple[str, str] | None:
    """(kind, words) if a call is not refused as by torch."""
    tally.tried["refusals"] += 1
    try:
        result = call()
    except Exception as error:
        kind, words = told(error)
        if kind == "crash":
            return kind, words
        if not isinstance(error, refusal):
            return "error type", f"{code_of(error)}, torch {refusal.__name__}"
        tally.equal["refusals"] += 1
        return None
    return "accepted", f"gives {brief(result)}, torch {refusal.__name__}"


def told(error: Exception) -> tuple[str, str]:
    """(kind, words): refused on purpose, or an error that nobody meant."""
    first = next(iter(str(error).splitlines()), "")
    words = f"{code_of(error)}: {first}"
    if isinstance(error, EveryorderError):
        return "refused", words
    if type(error) is TypeError and any(each in first for each in BINDING):
        return "refused", words
    return "crash", words


def brief(result: Any) -> str:
    """A result in a few words."""
    return ", ".join(
        f"{each.dtype}{list(each.shape)}" if hasattr(each, "shape") else repr(each)
        for each in listed(result)[:3]
    )


def shown(way: Form, dtype: Any, sample: Any) -> str:
    """The call, as a line."""
    arguments = [written(each) for each in (sample.input, *sample.args)]
    arguments += [f"{name}={written(each)}" for name, each in sample.kwargs.items()]
    name = str(dtype).removeprefix("torch.")
    return f"{way.name}({', '.join(arguments)}) [{name}]"


def detached(value: Any) -> Any:
    """An argument whose tensors ask for no gradient; one tensor stays one tensor."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return type(value)(detached(each) for each in value)
    if isinstance(value, dict):
        return {name: detached(each) for name, each in value.items()}
    return value


@contextmanager
def filled() -> Iterator[None]:
    """The memory that samples leave unwritten holds NaN, not what was there before."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def seed() -> None:
    """What the samples and random operators draw from starts anew."""
    torch.default_generator.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
