"""Libraries: what each kind may do, how names and keys are completed, what is refused.

Failure safety is in `test_failure_safety`; the registration test rows of upstream are
in `test_upstream_registration`.

A kernel that overrides another one (spec 3.11) is warned of, or refused on request.
"""

import subprocess
import sys
import warnings
from typing import Any

import pytest

import everyorder.runtime.library
from everyorder.runtime.dispatch import (
    Dispatcher,
    KernelOverridden,
    Library,
    fingerprint,
)
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.registration import Conflict, KeyMisuse, LibraryMisuse
from everyorder.runtime.errors.schema import SchemaSyntaxError
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.schema import OperatorName
from everyorder.runtime.tensors import Tensor
from tests.coded import code, coded
from tests.dispatch.samples import FOO, bare, defined, op, says, silent, t_t, tt_t

CallRefused = coded(LibraryMisuse, "CallRefused")
NotRegistrable = coded(KeyMisuse, "NotRegistrable")


def lib(d: Dispatcher, kind: str = "FRAGMENT", key: str | None = None) -> Library:
    return Library("test", kind, key, dispatcher=d, origin="here")


def keys_of(d: Dispatcher, name: str = "test::foo") -> list[str]:
    entry = d.entry(name)
    return [] if entry is None else sorted(k.name for k in entry.implementations)


# Namespaces of definitions


def test_one_def_library_for_a_namespace() -> None:
    d = silent()
    first = lib(d, "DEF")
    with pytest.raises(Conflict, check=code("NamespaceTaken")) as caught:
        Library("test", "DEF", dispatcher=d, origin="there")
    assert caught.value.fields() == {
        "namespace": "test",
        "holder": "here",
        "newcomer": "there",
    }
    assert "Close the holder first" in str(caught.value)
    with Library("other", "DEF", dispatcher=d), lib(d, "FRAGMENT"), lib(d, "IMPL"):
        first.close()
        lib(d, "DEF").close()


def test_names_with_and_without_the_namespace() -> None:
    d = silent()
    with lib(d) as library:
        library.define("test::foo(Tensor x) -> Tensor")
        library.define("foo.over(Tensor x) -> Tensor")
        library.impl("foo", says(1), "CPU")
        library.impl("test::foo.over", says(1), "CPU")
        library.impl(OperatorName("foo"), says(1), "CUDA")
        library.impl(op(d), says(1), "Meta")
        assert d.op_names() == ("test::foo", "test::foo.over")
        assert keys_of(d) == ["CPU", "CUDA", "Meta"]
        assert keys_of(d, "test::foo.over") == ["CPU"]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda lib: lib.define("other::foo(Tensor x) -> Tensor"), "define("),
        (lambda lib: lib.impl("other::foo", says(1), "CPU"), "impl('other::foo', ...)"),
        (lambda lib: lib.reserve("other::foo"), "reserve('other::foo')"),
    ],
)
def test_names_in_another_namespace(call: Any, text: str) -> None:
    library = lib(silent())
    with pytest.raises(LibraryMisuse, check=code("NamespaceMismatch")) as caught:
        call(library)
    error = caught.value
    assert (error.given, error.namespace) == ("other", "test")
    assert error.call.startswith(text)
    assert error.library == repr(library)


def test_a_schema_where_a_name_is_asked_for() -> None:
    with pytest.raises(SchemaSyntaxError):
        lib(silent()).impl("foo(Tensor x) -> Tensor", says(1), "CPU")


def test_what_is_no_name() -> None:
    library: Any = lib(silent())
    with pytest.raises(CallRefused) as caught:
        library.impl(5, says(1), "CPU")
    assert caught.value.reason == "int is not the name of an operator"


# impl


def test_the_key_of_a_kernel_is_its_own_or_the_library_s_or_composite() -> None:
    d = silent()
    with lib(d) as free, lib(d, "IMPL", "CPU") as bound:
        free.impl("own", says(1), "CUDA")
        free.impl("none", says(1))
        free.impl("undefined", says(1), "Undefined")
        bound.impl("library", says(1))
        bound.impl("same", says(1), DispatchKey.CPU)
        bound.impl("undefined_in_library", says(1), DispatchKey.Undefined)
        bound.impl("several", says(1), [None, "CPU"])  # type: ignore[list-item]  # None: the library's
        found = {n.partition("::")[2]: keys_of(d, n) for n in d.op_names()}
    assert found == {
        "own": ["CUDA"],
        "none": ["CompositeImplicitAutograd"],
        "undefined": ["CompositeImplicitAutograd"],
        "library": ["CPU"],
        "same": ["CPU"],
        "undefined_in_library": ["CPU"],
        "several": ["CPU"],
    }


@pytest.mark.spec("dispatch 8.4", "test_extend_library_with_dispatch_key_arg")
def test_a_key_that_is_not_the_library_s() -> None:
    with pytest.raises(LibraryMisuse, check=code("KeyMismatch")) as caught:
        lib(silent(), "IMPL", "CPU").impl("foo", says(1), "CUDA")
    assert caught.value.fields() == {
        "call": "impl('foo', ...)",
        "given": "CUDA",
        "key": "CPU",
        "library": "Library('test', 'IMPL', 'CPU') here",
    }


def test_several_keys_at_once_end_at_once() -> None:
    d = silent()
    library = lib(d)
    held = library.impl("foo", says(1), ("CPU", DispatchKey.CUDA, "Autograd"))
    assert keys_of(d) == ["Autograd", "CPU", "CUDA"]
    held.close()
    assert keys_of(d) == []


def test_no_key_at_all() -> None:
    d = Dispatcher()
    with pytest.raises(CallRefused) as caught:
        lib(d).impl("foo", says(1), [])
    assert caught.value.reason == "the list of dispatch keys is empty"


@pytest.mark.parametrize("key", ["Dense", "Sparse", "AutogradFunctionality"])
def test_building_blocks_are_refused(key: str) -> None:
    d = silent()
    with pytest.raises(NotRegistrable):
        lib(d).impl("foo", says(1), key)
    with pytest.raises(NotRegistrable):
        Library("_", "IMPL", key, dispatcher=d).fallback(says(1))


@pytest.mark.spec("dispatch 8.4", "test_error_if_fn_not_callable")
def test_what_is_no_kernel() -> None:
    library: Any = lib(silent())
    with pytest.raises(LibraryMisuse, check=code("NotAKernel")) as caught:
        library.impl("foo", "kernel", "CPU")
    assert caught.value.fields() == {"call": "impl('foo', ...)", "found": "str"}


def test_impl_in_the_wildcard_namespace() -> None:
    library = Library("_", "IMPL", "CPU", dispatcher=silent(), origin="here")
    reasons = set()
    for name in ("foo", "other::foo"):
        with pytest.raises(CallRefused) as caught:
            library.impl(name, says(1))
        reasons.add(caught.value.reason)
    assert reasons == {"an operator belongs to a namespace"}


# fallback, reserve, close


def test_fallbacks_are_for_impl_libraries_of_the_wildcard_with_a_key() -> None:
    d = silent()
    for library in (lib(d), lib(d, "IMPL", "CPU")):
        with pytest.raises(CallRefused) as caught:
            library.fallback(says(1), "CPU")
        assert caught.value.remedy == (
            "Use Library('_', 'IMPL', KEY).fallback(kernel)."
        )
    wild = Library("_", "IMPL", dispatcher=d, origin="here")
    with pytest.raises(CallRefused):
        wild.fallback(says(1))
    with pytest.raises(NotRegistrable) as undefined:
        wild.fallback(says(1), "Undefined")
    assert undefined.value.reason == "undefined"
    with pytest.raises(LibraryMisuse, check=code("KeyMismatch")):
        Library("_", "IMPL", "CPU", dispatcher=d).fallback(says(1), "CUDA")
    with pytest.raises(LibraryMisuse, check=code("NotAKernel")):
        wild.fallback(None, "CPU")  # type: ignore[arg-type]  # that is the mistake


def test_an_annotated_fallback_is_called_like_any_other() -> None:
    d = bare()
    library = defined(d, "foo(int x, int y=2) -> int")
    seen: list[tuple[Any, ...]] = []

    def falls(keys: KeySet, operator: Any, *args: int, **kwargs: int) -> int:
        seen.append((keys, operator.name.name, args, kwargs))
        return 3

    wild = Library("_", "IMPL", "ADInplaceOrView", dispatcher=d, origin="here")
    wild.fallback(falls, with_keyset=True)
    assert op(d).call(1) == 3
    assert seen[0][1:] == ("test::foo", (1,), {})
    assert DispatchKey.ADInplaceOrView in seen[0][0]
    library.close()


def test_reserving_keeps_a_name() -> None:
    d = silent()
    library = lib(d)
    first, second = library.reserve("foo"), library.reserve("test::foo")
    assert d.dump_state("test::foo") == "name: test::foo\nschema: (none)\n"
    assert d.dangling_impls() == ()
    first.close()
    assert d.op_names() == ("test::foo",)
    second.close()
    assert d.op_names() == ()


def test_a_closed_library_refuses_everything() -> None:
    d = silent()
    library = lib(d)
    wild = Library("_", "IMPL", "CPU", dispatcher=d)
    library.define(FOO)
    library.close()
    wild.close()
    calls: dict[str, Any] = {
        f"define({FOO!r})": lambda: library.define(FOO),
        "impl('foo', ...)": lambda: library.impl("foo", says(1), "CPU"),
        "reserve('foo')": lambda: library.reserve("foo"),
        "fallback(...)": lambda: wild.fallback(says(1)),
    }
    for text, call in calls.items():
        with pytest.raises(LibraryMisuse, check=code("LibraryClosed")) as caught:
            call()
        assert caught.value.call == text
    assert d.op_names() == ()


def test_leaving_a_library_closes_it_also_on_errors() -> None:
    d = silent()
    with lib(d) as library:
        library.define(FOO)
    assert d.op_names() == ()
    library = lib(d)
    with pytest.raises(ZeroDivisionError), library, library.define(FOO):
        raise ZeroDivisionError
    assert d.op_names() == ()


# Errors are the library's own, and say what to do


def test_every_text_names_the_call_or_both_sides() -> None:
    d = silent()
    library = lib(d)
    library.define(FOO, debug="definition")
    with pytest.raises(Conflict, check=code("SchemaMismatch")) as caught:
        library.impl("foo", tt_t, "CPU", debug="kernel")
    assert str(caught.value).splitlines() == [
        "the kernel for CPU does not fit the schema of test::foo: "
        f"{caught.value.difference}.",
        "  schema: test::foo(Tensor x) -> Tensor",
        "          definition",
        "  kernel: (Tensor _0, Tensor _1) -> Tensor _0",
        "          kernel",
        "  Change the annotations of the kernel or the schema, so that both say "
        "the same.",
    ]
    assert isinstance(caught.value, EveryorderError)


def test_a_typed_kernel_may_take_the_keyset_first() -> None:
    d = silent()
    library = lib(d)

    def with_keys(keys: KeySet, x: Tensor) -> Tensor:
        return x

    library.define(FOO)
    library.impl("foo", with_keys, "CPU", debug="k")
    line = d.dump_state("test::foo").splitlines()[4]
    assert line == "CPU: k :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]"


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
        with pytest.raises(Conflict, check=code("OverrideForbidden")) as caught:
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
        with pytest.raises(Conflict, check=code("OverrideForbidden")):
            library.impl("foo", says(1), "CPU", allow_override=False)


def test_the_warning_points_outside_of_the_runtime_from_any_depth() -> None:

    with Library("deep", "FRAGMENT") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x.clone(), "CPU")
        with pytest.warns(KernelOverridden) as caught:
            everyorder.runtime.library.impl("deep::f", "cpu", lib=library)(lambda x: x)
    assert [each.filename for each in caught] == [__file__]


# What runs at exit is called by nobody: the last one that was registered comes first.
AT_EXIT = """
import atexit
from everyorder.runtime import Library, default_dispatcher

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
