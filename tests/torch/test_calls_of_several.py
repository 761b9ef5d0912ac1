"""Calls of several tensors, lists and optionals run the kernel that torch runs.

Tensors of different backends bring keys of all of them; which kernel is called depends
on their union, on fallbacks at the Autograd keys, and on what lies below those.
"""

import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import DispatchKey, KeySet, Library, default_dispatcher
from everyorder.runtime.errors import EveryorderError

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

# Where kernels stand, in random choices of at most this many.
KEYS = (
    *("CPU", "Meta", "MkldnnCPU", "SparseCPU", "SparseCsrCPU", "QuantizedCPU"),
    "BackendSelect",
    *("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd"),
    *("ADInplaceOrView", "AutogradCPU", "AutogradMeta", "AutogradOther"),
    *("Autograd", "CompositeImplicitAutograd"),
)
MOST = 5
# Arguments, and what stands for each when it is called.
FORMS: tuple[tuple[str, str], ...] = (
    ("Tensor a, Tensor b", "tt"),
    ("Tensor a, Tensor b, Tensor c", "ttt"),
    ("Tensor[] a, Tensor b", "lt"),
    ("Tensor? a, Tensor b, Tensor? c", "oto"),
    ("Tensor a, Tensor?[] b", "tp"),
)
WORLDS, CALLS = 150, 12


def of_torch() -> dict[str, Any]:
    """A tensor of each kind, without gradient and with it."""
    with warnings.catch_warnings():
        # Of compressed sparse tensors, that they are new.
        warnings.simplefilter("ignore")
        plain = torch.ones(2, 2)
        made = {
            "dense": plain,
            "meta": torch.ones(2, 2, device="meta"),
            "sparse": plain.to_sparse(),
            "csr": plain.to_sparse_csr(),
            "mkldnn": plain.to_mkldnn(),
            "quantized": torch.quantize_per_tensor(plain, 0.1, 0, torch.qint8),
        }
    wanting = {
        f"{name} with grad": each.clone().requires_grad_()
        for name, each in made.items()
        if name != "quantized"
    }
    with torch.inference_mode():
        inferring = {
            "dense in inference": torch.ones(2, 2),
            "meta in inference": torch.ones(2, 2, device="meta"),
        }
    return {**made, **wanting, **inferring}


def ours(theirs: Any) -> runtime.Tensor:
    """A tensor of ours with the keys of one of torch's."""
    printed = str(torch._C._dispatch_keys(theirs))
    inside = printed.removeprefix("DispatchKeySet(").removesuffix(")")
    keys = [DispatchKey[name] for name in inside.split(", ")]
    made: runtime.Tensor = runtime.ones((2, 2)).with_keyset(KeySet(keys))
    made._requires_grad = theirs.requires_grad
    return made


@contextmanager
def world(name: str, arguments: str, keys: list[str]) -> Iterator[tuple[Any, Any]]:
    """An operator on both sides, and what says which of its kernels ran.

    The kernels are registered in the order of `keys`.
    """
    ran: list[str] = []

    def kernel(key: str) -> Callable[..., Any]:
        return lambda *given: ran.append(key)

    schema = f"{name}({arguments}) -> ()"
    library = torch.library.Library("everyorder_several", "FRAGMENT")
    mine = Library("everyorder_several", "FRAGMENT")
    try:
        library.define(schema)
        mine.define(schema)
        for key in keys:
            library.impl(name, kernel(key), key)
            mine.impl(name, kernel(key), key)
        operator = getattr(torch.ops.everyorder_several, name).default
        handle = default_dispatcher().find_op(f"everyorder_several::{name}")
        assert handle is not None

        def called(function: Callable[..., Any], values: Any) -> str:
            ran.clear()
            try:
                function(*values)
            except (EveryorderError, RuntimeError, NotImplementedError):
                return "refused"
            return " ".join(ran)

        yield (
            lambda values: called(operator, values),
            lambda values: called(handle.call, values),
        )
    finally:
        mine.close()
        library._destroy()


def values(chance: random.Random, form: str, names: list[str]) -> list[Any]:
    """Names of tensors for each argument; None and lists where they may stand."""
    found: list[Any] = []
    for kind in form:
        some = [chance.choice(names) for _ in range(chance.randint(0, 3))]
        if kind == "l":
            found.append(some or [chance.choice(names)])
        elif kind == "p":
            found.append([each if chance.random() < 0.7 else None for each in some])
        elif kind == "o" and chance.random() < 0.5:
            found.append(None)
        else:
            found.append(chance.choice(names))
    return found


def taken(values: list[Any], tensors: dict[str, Any]) -> list[Any]:
    """The tensors of these names."""
    return [
        taken(each, tensors)
        if isinstance(each, list)
        else None
        if each is None
        else tensors[each]
        for each in values
    ]


def ordered(keys: list[str]) -> list[str]:
    """The widest last: torch leaves slots as they were where it comes first."""
    return sorted(keys, key=KEYS.index)


def compare(seed: int) -> tuple[int, int, int]:
    """Play random worlds: how many calls, how many of several, how many refused."""
    theirs = of_torch()
    mine = {name: ours(each) for name, each in theirs.items()}
    chance = random.Random(seed)
    compared, ended, several = 0, 0, 0
    for number in range(WORLDS):
        arguments, form = chance.choice(FORMS)
        keys = ordered(chance.sample(KEYS, chance.randint(1, MOST)))
        with world(f"f{number}", arguments, keys) as (torchs, our):
            for _ in range(CALLS):
                asked = values(chance, form, [*theirs])
                expected, found = torchs(taken(asked, theirs)), our(taken(asked, mine))
                case = f"seed {seed}: {keys} called with {asked}"
                assert found == expected, f"{case}: {found}, torch {expected}"
                compared += 1
                ended += expected == "refused"
                several += len({*map(str, asked)}) > 1
    return compared, several, ended


def test_the_same_kernel_runs() -> None:
    seed = random.SystemRandom().getrandbits(32)
    compared, several, ended = compare(seed)
    print(f"seed {seed}: {compared} calls, {several} of several, {ended} refused")
    assert several > compared / 2
    assert 0 < ended < compared


def replayed(seed: int) -> tuple[int, int]:
    """Play worlds in any order: how many calls differ, and how many if widest is last.

    Raises AssertionError if ours depend on the order.
    """
    theirs = of_torch()
    mine = {name: ours(each) for name, each in theirs.items()}
    chance = random.Random(seed)
    stale, wrong = 0, 0
    for number in range(WORLDS):
        arguments, form = chance.choice(FORMS)
        keys = chance.sample(KEYS, chance.randint(1, MOST))
        calls = [values(chance, form, [*theirs]) for _ in range(CALLS)]
        if {"Meta", "CompositeImplicitAutograd"} <= {*keys}:
            continue  # torch refuses to register the one behind the other
        found: list[list[tuple[str, str]]] = []
        for at, order in enumerate((keys, ordered(keys))):
            with world(f"any{number}_{at}", arguments, order) as (torchs, our):
                found.append(
                    [
                        (torchs(taken(asked, theirs)), our(taken(asked, mine)))
                        for asked in calls
                    ]
                )
        for (torchs_first, our_first), (torchs_last, our_last) in zip(
            *found, strict=True
        ):
            assert our_first == our_last, f"seed {seed}: {keys}"
            stale += torchs_first != our_first
            wrong += torchs_last != our_last
    return stale, wrong


def test_torch_differs_only_where_its_tables_depend_on_the_order() -> None:
    """The row "stale tables" of the deviations; ours do not depend on it."""
    stale, wrong = replayed(7)
    assert stale > 10
    assert wrong == 0


def test_a_fallback_that_goes_to_the_next_key_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of tensors at AutogradCPU and AutogradOther it would call both."""
    module = sys.modules["everyorder.runtime.autograd.install"]
    monkeypatch.setattr(module, "below_autograd", lambda below, keyset: below.run)
    with pytest.raises(AssertionError, match="seed 1"):
        compare(1)
