"""The teaching tool: real tables, upstream's columns (spec 6.4, rows of 8.1)."""

import pytest

from everyorder.runtime.errors.registration import LibraryMisuse, LookupFailed
from everyorder.runtime.keys import DispatchKey
from tests.coded import code
from tests.examples.teaching import ALIAS_KEYS, RUNTIME_KEYS, PythonDispatcher


def tool(*keys: str) -> PythonDispatcher:
    made = PythonDispatcher()
    made.register(keys)
    return made


def test_basic() -> None:
    made = tool("CPU", "XLA", "Lazy", "CompositeImplicitAutograd")
    assert (
        made.registrations()
        == """
Registered Kernels
key             kernel
---------------------------
CPU             fn_CPU
XLA             fn_XLA
Lazy            fn_Lazy
CompositeImplicitAutograd[alias] fn_CompositeImplicitAutograd
"""
    )
    # In this stage autograd falls through; with a real kernel the word goes.
    assert (
        made.dispatch_table()
        == """
Computed Dispatch Table
key             kernel
---------------------------
CPU             fn_CPU [kernel]
XLA             fn_XLA [kernel]
Lazy            fn_Lazy [kernel]
FPGA            fn_CompositeImplicitAutograd [math kernel]
AutogradOther   fn_CompositeImplicitAutograd [math kernel]
AutogradCPU     fallthrough [backend fallback]
AutogradXLA     fallthrough [backend fallback]
AutogradLazy    fallthrough [backend fallback]
"""
    )


def test_math_autogradcpu() -> None:
    keys = ("CPU", "XLA", "Lazy", "CompositeImplicitAutograd", "AutogradCPU")
    lines = tool(*keys).dispatch_table().splitlines()
    assert lines[-3:] == [
        "AutogradCPU     fn_AutogradCPU [kernel]",
        "AutogradXLA     fallthrough [backend fallback]",
        "AutogradLazy    fallthrough [backend fallback]",
    ]


def test_defaultbackend_autogradcpu() -> None:
    keys = ("CPU", "XLA", "Lazy", "CompositeExplicitAutograd", "AutogradCPU")
    assert (
        tool(*keys).dispatch_table()
        == """
Computed Dispatch Table
key             kernel
---------------------------
CPU             fn_CPU [kernel]
XLA             fn_XLA [kernel]
Lazy            fn_Lazy [kernel]
FPGA            fn_CompositeExplicitAutograd [default backend kernel]
AutogradOther   fallthrough [backend fallback]
AutogradCPU     fn_AutogradCPU [kernel]
AutogradXLA     fallthrough [backend fallback]
AutogradLazy    fallthrough [backend fallback]
"""
    )


def test_autogradother() -> None:
    made = tool("CPU", "FPGA", "CompositeImplicitAutograd")
    assert "AutogradOther   ambiguous_autogradother [ambiguous autogradother]\n" in (
        made.dispatch_table()
    )


def test_keys_without_a_kernel_are_left_out() -> None:
    assert "FPGA" not in tool("CPU").dispatch_table()


def test_registering_again_replaces() -> None:
    made = tool("CPU", "Autograd")
    made.register([DispatchKey.CPU])
    assert made.registrations().splitlines()[4:] == ["CPU             fn_CPU"]
    made.register([])
    assert made.registrations().splitlines()[4:] == []


def test_raw_dumps_are_those_of_the_dispatcher() -> None:
    made = tool("CPU")
    assert made.raw_registrations().startswith("name: teaching::foo\nschema: ")
    assert made.raw_dispatch_table().startswith("CPU: fn_CPU [kernel]\n")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (("CPU", "XLA", "CPU"), "each key has one kernel, but CPU came twice"),
        (("CPU", "CUDA"), "the tool does not show CUDA"),
        (
            ("CompositeExplicitAutograd", "CompositeImplicitAutograd"),
            "CompositeImplicitAutograd and CompositeExplicitAutograd are alternatives",
        ),
    ],
)
def test_what_is_refused_changes_nothing(keys: tuple[str, ...], reason: str) -> None:
    made = tool("CPU", "Autograd")
    before = made.registrations(), made.dispatch_table()
    with pytest.raises(LibraryMisuse, check=code("CallRefused")) as caught:
        made.register(keys)
    assert caught.value.reason == reason
    assert caught.value.call == f"register({list(keys)})"
    assert (made.registrations(), made.dispatch_table()) == before


def test_an_unknown_name() -> None:
    with pytest.raises(LookupFailed, check=code("UnknownKey")):
        tool("CPUU")


def test_the_keys_of_the_tool() -> None:
    assert PythonDispatcher().keys() == (
        *("CPU", "AutogradCPU", "FPGA", "AutogradOther"),
        *("XLA", "AutogradXLA", "Lazy", "AutogradLazy"),
        *("CompositeExplicitAutograd", "Autograd", "CompositeImplicitAutograd"),
    )
    assert PythonDispatcher().keys() == RUNTIME_KEYS + ALIAS_KEYS
