"""Overriding a kernel (spec 3.11): warned of, refused on request, never by half."""

import subprocess
import sys
import warnings

import pytest

from runtime.dispatch import (
    Dispatcher,
    KernelOverridden,
    Library,
    fingerprint,
)
from runtime.errors.registration import (
    OverrideForbidden,
)
from tests.dispatch.samples import FOO, says, silent, t_t


def lib(d: Dispatcher, kind: str = "FRAGMENT", key: str | None = None) -> Library:
    return Library("test", kind, key, dispatcher=d, origin="here")


def keys_of(d: Dispatcher, name: str = "test::foo") -> list[str]:
    entry = d.entry(name)
    return [] if entry is None else sorted(k.name for k in entry.implementations)


def test_overriding_warns_with_the_real_previous_kernel() -> None:
    d = Dispatcher()
    library = lib(d)
    library.impl("foo", says(1), "CPU", debug="first")
    with pytest.warns(KernelOverridden) as caught:
        library.impl("foo", says(2), "CPU", debug="second")
    with pytest.warns(KernelOverridden) as again:
        library.impl("foo", says(3), ["CPU", "CUDA"], debug="third")
    assert [str(w.message) for w in (*caught, *again)] == [
        "test::foo gets another kernel for CPU:\n"
        "  until now: first\n  from now:  second",
        "test::foo gets another kernel for CPU:\n"
        "  until now: second\n  from now:  third",
    ]
    assert caught[0].filename == __file__


def test_defining_with_a_kernel_warns_as_well() -> None:
    d = Dispatcher()
    library = lib(d)
    library.impl("foo", t_t, debug="first")
    with pytest.warns(KernelOverridden, match="until now: first") as caught:
        library.define(FOO, kernel=t_t, debug="second")
    assert caught[0].filename == __file__


def test_meta_kernels_are_overridden_silently_and_so_is_everything_on_request() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for key, d in (("Meta", Dispatcher()), ("CPU", silent())):
            library = lib(d)
            library.impl("foo", says(1), key)
            library.impl("foo", says(2), key)
            assert d.dump_state("test::foo").count("(inactive)") == 1


def test_a_warning_that_is_an_error_registers_nothing() -> None:
    d = Dispatcher()
    library = lib(d)
    library.impl("foo", says(1), "CPU")
    before = fingerprint(d.snapshot())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KernelOverridden):
            library.impl("foo", says(2), ["CUDA", "CPU"])
    assert fingerprint(d.snapshot()) == before


def test_an_exclusive_kernel_is_the_first_or_refused() -> None:
    d = silent()
    library = lib(d)
    library.impl("foo", says(1), "CPU", allow_override=False, debug="first")
    before = fingerprint(d.snapshot())
    for keys in ("CPU", ["CUDA", "CPU"]):
        with pytest.raises(OverrideForbidden) as caught:
            library.impl("foo", says(2), keys, allow_override=False, debug="second")
        assert caught.value.fields() == {
            "operator": "test::foo",
            "key": "CPU",
            "kernel": "second",
            "original": "first",
        }
    # A key named twice is named once, and overrides nothing.
    library.impl("bar", says(2), ["CPU", "CPU"], allow_override=False).close()
    assert fingerprint(d.snapshot()) == before


def test_what_is_refused_is_not_warned_of() -> None:
    d = Dispatcher()
    with Library("test", "FRAGMENT", dispatcher=d, origin="here") as library:
        library.impl("foo", says(0), "CPU")
        # A warning would be an error here, and another one.
        with pytest.raises(OverrideForbidden):
            library.impl("foo", says(1), "CPU", allow_override=False)


def test_the_warning_points_outside_of_the_runtime_from_any_depth() -> None:
    import runtime.library

    with Library("deep", "FRAGMENT") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x.clone(), "CPU")
        with pytest.warns(KernelOverridden) as caught:
            runtime.library.impl("deep::f", "cpu", lib=library)(lambda x: x)
    assert [each.filename for each in caught] == [__file__]


# What runs at exit is called by nobody: the last one that was registered comes first.
AT_EXIT = """
import atexit
from runtime import Library, default_dispatcher

library = Library("bare", "DEF")
library.define("f(Tensor x) -> Tensor")
library.impl("f", lambda x: x, "CPU")
atexit.register(lambda: print(default_dispatcher().entry("bare::f").total))
atexit.register(library.impl, "f", lambda x: x, "CPU")
"""


def test_an_override_that_nobody_called_for() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", AT_EXIT], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "3\n"
    assert "bare::f gets another kernel for CPU" in ran.stderr
    assert "Error" not in ran.stderr
