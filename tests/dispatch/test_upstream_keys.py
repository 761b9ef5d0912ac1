"""The rows of upstream's `op_registration_test.cpp` about which of several keys wins.

A tensor "with grad" carries its autograd key, one without does not (in upstream's
tests as here: the key set decides).  "Catch-all" is CompositeImplicitAutograd.

| upstream row | test here |
|---|---|
| whenRegisteringBackendFallbackKernel_* (5) | backend_fallback, its neighbours |
| whenRegisteringBackendFallbackKernelAndCatchallKernelForSameBackend | the same |
| whenRegisteringAutogradKernel* (4), ...WithCatchAllKernel* | WINNERS autograd, ... |
| ...AutogradKernelWithRegularKernel_thenCanCallRegularKernel | WINNERS |
| Autograd{Backend,XLA}OverridesAutogradKernel | WINNERS, missing_backend |
| whenRegisterWith{XLA,Lazy}KernelAndCatchAll_AutogradIsNotFilled | not_filled |
| dispatchWithCompositeImplicitAutogradKernel (+AndAutograd, +AndCatchAll) | WINNERS |
| {AutogradBackend,Backend}OverridesCompositeImplicitAutogradKernel | WINNERS |
| dispatchWithCompositeExplicitAutogradKernel (+AndCI), BackendOverrides... | WINNERS |
| dispatch, dispatchMultiple, dispatchAutogradPrecedence | WINNERS |
| throwsWhenRegisterToBackendMapsToAutogradOther | autograd_other |
| dispatchMultipleTensors | multiple_tensors |
| registerCompositeImplicitAutogradWithCPUKernel_andCallAutogradOther | WINNERS |
| fallback, BackendSelectRedispatchesToCPU | backend_fallback, backend_select |
"""

from typing import Any

import pytest

from everyorder.runtime.dispatch import Dispatcher, Library, OperatorHandle, fallthrough
from everyorder.runtime.errors.call import CannotRun, MissingKernel
from everyorder.runtime.keys import DispatchKey, full_after
from tests.coded import code
from tests.dispatch.samples import defined, on, op, says, silent, untyped

CI, CE = "CompositeImplicitAutograd", "CompositeExplicitAutograd"


def with_grad(name: str) -> tuple[str, str]:
    """The keys of a tensor of that backend that takes part in autograd."""
    key = DispatchKey.parse(name)
    if key.functionality == "Dense":
        return name, f"Autograd{key.backend}"
    return name, "AutogradOther"


def registered(d: Dispatcher, *keys: str) -> Library:
    library = defined(d, "foo(Tensor x) -> str")
    for number, key in enumerate(keys):
        library.impl(
            "foo", says(f"{key} {number}" if key in keys[:number] else key), key
        )
    return library


# registered keys -> {keys of the tensor: whose kernel runs}
WINNERS: list[tuple[tuple[str, ...], dict[tuple[str, ...], str]]] = [
    (("Autograd",), {with_grad("CPU"): "Autograd", with_grad("XLA"): "Autograd"}),
    (("Autograd", "CPU"), {("CPU",): "CPU", with_grad("CPU"): "Autograd"}),
    (("Autograd", CI), {("CPU",): CI, with_grad("CPU"): CI, with_grad("FPGA"): CI}),
    (
        ("Autograd", "AutogradCPU", "CPU"),
        {with_grad("CPU"): "AutogradCPU", with_grad("XLA"): "Autograd"},
    ),
    (
        ("Autograd", "AutogradXLA"),
        {with_grad("XLA"): "AutogradXLA", with_grad("CPU"): "Autograd"},
    ),
    (
        (CI,),
        {
            keys: CI
            for name in ("CPU", "XLA", "Lazy", "SparseCPU", "Meta")
            for keys in ((name,), with_grad(name))
        },
    ),
    ((CI, CI), {("CPU",): f"{CI} 1", with_grad("XLA"): f"{CI} 1"}),
    (
        (CI, "AutogradCPU"),
        {with_grad("CPU"): "AutogradCPU", ("CPU",): CI, with_grad("XLA"): CI},
    ),
    (
        (CI, "CPU"),
        {
            ("CPU",): "CPU",
            with_grad("CPU"): "CPU",
            ("XLA",): CI,
            with_grad("XLA"): CI,
            with_grad("Meta"): CI,
            with_grad("FPGA"): CI,
        },
    ),
    (
        (CE,),
        {
            keys: CE
            for name in ("CPU", "XLA", "Lazy", "SparseCPU", "Meta", "FPGA")
            for keys in ((name,), with_grad(name))
        },
    ),
    ((CE, CI), {("CPU",): CE, with_grad("CPU"): CE, with_grad("FPGA"): CE}),
    ((CE, "CPU"), {("CPU",): "CPU", with_grad("CPU"): "CPU", ("XLA",): CE}),
    (("CPU", "CUDA"), {("CPU",): "CPU", ("CUDA",): "CUDA"}),
    (("CPU", "AutogradCPU"), {("CPU",): "CPU", with_grad("CPU"): "AutogradCPU"}),
]


@pytest.mark.parametrize(
    ("keys", "winners"), WINNERS, ids=["+".join(keys) for keys, _ in WINNERS]
)
def test_winners(keys: tuple[str, ...], winners: dict[tuple[str, ...], str]) -> None:
    d = silent()
    library = registered(d, *keys)
    found = {each: op(d).call(on(*each)) for each in winners}
    assert found == winners
    library.close()


def test_missing_backend() -> None:
    d = silent()
    library = registered(d, "Autograd")
    with pytest.raises(MissingKernel):
        op(d).call(on("CPU"))
    library.close()


@pytest.mark.parametrize("backend", ["XLA", "Lazy"])
def test_not_filled(backend: str) -> None:
    d = silent()
    library = registered(d, backend, CI)
    assert op(d).call(on(*with_grad(backend))) == backend
    assert op(d).call(on(*with_grad("CPU"))) == CI
    assert not d.dump_table("test::foo").count(f"Autograd{backend}: {CI}")
    library.close()


@pytest.mark.parametrize("name", ["FPGA", "MkldnnCPU", "SparseCPU"])
def test_autograd_other(name: str) -> None:
    d = silent()
    library = registered(d, name, CI)
    assert op(d).call(on(name)) == name
    with pytest.raises(CannotRun, check=code("AmbiguousKernel")):
        op(d).call(on(name, "AutogradOther"))
    with library.impl("foo", says("mine"), "AutogradOther"):
        assert op(d).call(on(name, "AutogradOther")) == "mine"
    library.close()


def test_multiple_tensors() -> None:
    d = silent()
    library = defined(d, "foo(Tensor x, Tensor y) -> str")
    library.impl("foo", says("cpu"), "CPU")
    library.impl("foo", says("private"), "PrivateUse1")
    library.impl("foo", fallthrough, "AutogradPrivateUse1")
    cpu, private = on("CPU"), on("PrivateUse1")
    call = op(d).call
    assert [call(cpu, cpu), call(cpu, private), call(private, cpu)] == [
        *("cpu", "private", "private")
    ]
    graded = on(*with_grad("CPU")), on(*with_grad("PrivateUse1"))
    assert call(*graded) == "private"
    library.close()


def fallen(d: Dispatcher, *keys: str) -> Library:
    wild = Library("_", "IMPL", dispatcher=d)
    for key in keys:
        wild.fallback(untyped(lambda o, *a, k=key: f"{k} for {o.name.name}"), key)
    return wild


def test_backend_fallback() -> None:
    d = silent()
    library, wild = registered(d, "CPU"), fallen(d, "CPU", "CUDA")
    assert op(d).call(on("CPU")) == "CPU"  # its own kernel comes first
    assert op(d).call(on("CUDA")) == "CUDA for test::foo"
    with pytest.raises(MissingKernel):
        op(d).call(on("XLA"))
    wild.close()
    with pytest.raises(MissingKernel):
        op(d).call(on("CUDA"))
    library.close()


def test_backend_fallback_and_catchall() -> None:
    d = silent()
    library, wild = registered(d, CI), fallen(d, "CPU")
    assert op(d).call(on("CPU")) == CI
    library.close()
    library = registered(d)
    assert op(d).call(on("CPU")) == "CPU for test::foo"
    library.close()
    wild.close()


def test_operators_that_come_later_find_the_fallback() -> None:
    d = silent()
    wild = fallen(d, "CPU")
    library = registered(d)
    assert op(d).call(on("CPU")) == "CPU for test::foo"
    library.close()
    wild.close()


def test_backend_select() -> None:
    d = silent()
    library = registered(d, "CPU")
    hits: list[str] = []

    @untyped
    def select(keys: Any, x: Any) -> Any:
        hits.append(str(keys))
        handle: OperatorHandle = op(d)
        return handle.redispatch(keys & full_after(DispatchKey.BackendSelect), x)

    library.impl("foo", select, "BackendSelect", with_keyset=True)
    assert op(d).call(on("CPU")) == "CPU"
    assert hits == ["KeySet(CPU, BackendSelect)"]
    library.close()
