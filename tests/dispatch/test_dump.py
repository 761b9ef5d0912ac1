"""The formats of spec 6.1 to 6.3, byte for byte."""

import pytest

from runtime.dispatch import Library, boxed, fallthrough
from runtime.dispatch.dump import list_keys
from runtime.keys import SLOTS, DispatchKey
from tests.dispatch.samples import FOO, bare, defined, says, silent, t_t

# The example of the format, with the description of every kernel given.
EXAMPLE = """\
name: test::foo
schema: test::foo(Tensor x) -> Tensor
debug: registered at /dev/null:0
alias analysis kind: FROM_SCHEMA
CPU: impl_t_t :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
AutogradCPU: impl_t_t :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
Autograd[alias]: impl_t_t :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
CompositeImplicitAutograd[alias]: impl_t_t :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
"""


def test_the_example() -> None:
    d = bare()
    library = Library("test", "DEF", dispatcher=d, origin="registered at /dev/null:0")
    for key in ("Autograd", "AutogradCPU", None, "CPU"):
        library.impl("foo", t_t, key, debug="impl_t_t")
    library.define(FOO)
    assert d.dump_state("test::foo") == EXAMPLE


def test_without_a_schema_there_is_no_debug_and_no_kind() -> None:
    d = bare()
    library = Library("test", "IMPL", dispatcher=d, origin="here")
    library.impl("foo", t_t, "CPU", debug="k")
    assert d.dump_state("test::foo") == (
        "name: test::foo\n"
        "schema: (none)\n"
        "CPU: k :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]\n"
    )


def test_kinds_of_kernels() -> None:
    d = bare()
    library = defined(d)
    library.impl("foo", fallthrough, "AutogradCPU")
    library.impl("foo", says(0), "CPU", debug="python")
    library.impl("foo", boxed(says(0), "stack"), "CUDA")
    library.impl("foo", t_t, "Meta")
    assert d.dump_state("test::foo").splitlines()[4:] == [
        "CPU: python :: (none) [ boxed ]",
        "CUDA: stack (here) :: (none) [ boxed ]",
        "Meta: t_t (here) :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]",
        "AutogradCPU: here :: (none) [ fallthrough boxed ]",
    ]


def test_overloads_and_inactive_kernels() -> None:
    d = bare()
    library = defined(d, "foo.over(Tensor x) -> Tensor")
    for name in ("old", "new"):
        library.impl("foo.over", says(0), "Autograd", debug=name)
        library.impl("foo.over", says(0), "CPU", debug=name)
    assert d.dump_state("test::foo.over").splitlines() == [
        "name: test::foo.over",
        "schema: test::foo.over(Tensor x) -> Tensor",
        "debug: here",
        "alias analysis kind: FROM_SCHEMA",
        "CPU: new :: (none) [ boxed ]",
        "CPU (inactive): old :: (none) [ boxed ]",
        "Autograd[alias]: new :: (none) [ boxed ]",
        "Autograd[alias] (inactive): old :: (none) [ boxed ]",
    ]


def test_keys_stand_in_the_order_of_their_values() -> None:
    order = (
        *("BackendSelect", "AutogradOther", "Tracer", "PythonDispatcher", "CPU"),
        *("CUDA", "Meta", "SparseCPU", "AutogradCPU", "Autograd"),
        *("CompositeImplicitAutograd", "FuncTorchBatchedDecomposition"),
        *("CompositeImplicitAutogradNestedTensor", "CompositeExplicitAutograd"),
        "CompositeExplicitAutogradNonFunctional",
    )
    d = bare()
    library = defined(d)
    for key in reversed(order):
        library.impl("foo", says(0), key, debug="k")
    lines = d.dump_state("test::foo").splitlines()[4:]
    assert tuple(line.split(":")[0].removesuffix("[alias]") for line in lines) == order


@pytest.mark.parametrize(
    ("alias", "kind"),
    [
        ("", "FROM_SCHEMA"),
        ("FROM_SCHEMA", "FROM_SCHEMA"),
        ("CONSERVATIVE", "CONSERVATIVE"),
        ("PURE_FUNCTION", "PURE_FUNCTION"),
    ],
)
def test_alias_kinds(alias: str, kind: str) -> None:
    d = bare()
    with Library("test", "DEF", dispatcher=d) as library:
        library.define(FOO, alias)
        line = d.dump_state("test::foo").splitlines()[3]
    assert line == f"alias analysis kind: {kind}"


def test_fallbacks_and_tags_are_not_in_the_state() -> None:
    d = silent()
    with Library("test", "DEF", dispatcher=d, origin="here") as library:
        library.define(FOO, tags=("core", "pointwise"))
        assert d.dump_state("test::foo") == (
            "name: test::foo\n"
            "schema: test::foo(Tensor x) -> Tensor\n"
            "debug: here\n"
            "alias analysis kind: FROM_SCHEMA\n"
        )


def test_unknown_operators_print_nothing() -> None:
    d = silent()
    assert d.dump_state("test::foo") == ""
    assert d.dump_table("test::foo") == ""


def test_the_table_has_undefined_first_and_then_the_order_of_sets() -> None:
    d = silent()
    library = defined(d)
    for key in ("AutogradCPU", "CPU", "SparseCPU", "Meta", "Tracer"):
        library.impl("foo", says(0), key, debug=key)
    library.impl("foo", fallthrough, "QuantizedCPU", debug="skipped")
    library.impl("foo", says(0), "CompositeImplicitAutograd", debug="composite")
    lines = d.dump_table("test::foo").splitlines()
    shown = [line.split(": ")[0] for line in lines]
    assert shown == [key.name for key in SLOTS if key.name in shown]
    assert shown[:3] == ["Undefined", "CPU", "CUDA"]
    by_key = dict(line.split(": ", 1) for line in lines)
    assert by_key["QuantizedCPU"] == "fallthrough skipped [kernel]"
    assert by_key["ADInplaceOrView"] == "fallthrough built in [backend fallback]"
    assert by_key["AutogradOther"] == (
        "ambiguous_autogradother [ambiguous autogradother]"
    )
    assert by_key["AutogradCPU"] == "AutogradCPU [kernel]"
    assert by_key["Undefined"] == "composite [math kernel]"
    assert "Python" not in by_key


def test_a_table_byte_for_byte() -> None:
    d = bare()
    library = Library("test", "IMPL", dispatcher=d, origin="here")
    library.impl("foo", says(0), "CPU", debug="fn_cpu")
    library.impl("foo", fallthrough, "AutogradCPU", debug="skip")
    assert d.dump_table("test::foo") == (
        "CPU: fn_cpu [kernel]\nAutogradCPU: fallthrough skip [kernel]\n"
    )


def test_listed_keys_leave_undefined_out() -> None:
    d = bare()
    library = Library("test", "IMPL", dispatcher=d)
    library.impl("foo", says(0), "AutogradCPU")
    library.impl("foo", says(0), "CompositeExplicitAutogradNonFunctional")
    library.impl("foo", fallthrough, "Tracer")
    entry = d.entry("test::foo")
    assert entry is not None
    keys = list_keys(entry)
    assert "Undefined" not in keys
    assert keys[0] == "CPU"
    assert keys[-2:] == ("AutogradCPU", "Tracer")
    assert [DispatchKey[name].slot for name in keys] == sorted(
        DispatchKey[name].slot or 0 for name in keys
    )


def test_equal_entries_share_one_rendering() -> None:
    texts = []
    for _ in range(2):
        d = bare()
        library = defined(d)
        library.impl("foo", t_t, "CPU")
        texts.append((d.dump_state("test::foo"), d.dump_table("test::foo")))
        library.close()
    assert texts[0][0] is texts[1][0]
    assert texts[0][1] is texts[1][1]
