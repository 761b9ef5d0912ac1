# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""Free functions, for operators of any origin, and `get_kernel` (spec 3.13.4)."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from everyorder.runtime import (
    Dispatcher,
    DispatchKey,
    KeySet,
    Library,
    Tensor,
    autocast,
    fallthrough,
    linked,
    ops,
    tensor,
)
from everyorder.runtime.custom import free_functions
from everyorder.runtime.custom.free_functions import custom_of, dispatcher_of, handle_of
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.errors.autograd import AutogradMisuse
from everyorder.runtime.errors.call import CallError, OperatorGone
from everyorder.runtime.errors.custom import DefinitionRefused
from everyorder.runtime.errors.registration import Conflict, LookupFailed, UnknownDevice
from everyorder.runtime.library import (
    custom_op,
    define,
    get_kernel,
    impl,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
)
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from tests.coded import code
from tests.custom.functions import double, like, repeatedly


def test_every_form_means_the_same() -> None:
    with custom_op("mine::f.by", double, mutates_args=()) as made:
        forms: list[Any] = ["mine::f.by", made, made.handle, ops.mine.f]
        assert all(handle_of("f", form) is made.handle for form in forms)
        assert custom_of(made.handle) is made
    assert custom_of(made.handle) is None
    assert dispatcher_of(made.handle) is default_dispatcher()


def test_several_overloads() -> None:
    with Library("mine", "FRAGMENT") as library:
        for overload in ("", ".b", ".a"):
            library.define(f"f{overload}(Tensor x) -> Tensor")
        with pytest.raises(DefinitionRefused, check=code("OverloadNeeded")) as refused:
            handle_of("register_fake(...)", ops.mine.f)
        assert str(refused.value) == (
            "register_fake(...): `mine::f` has 3 overloads, and each is a separate "
            "operator.\n"
            "  overloads: default, a, b"
        )


@pytest.mark.parametrize(
    ("given", "found"), [(3, "an int"), (double, "a function"), (None, "None")]
)
def test_what_is_no_operator(given: Any, found: str) -> None:
    with pytest.raises(DefinitionRefused, check=code("NotAnOperator")) as refused:
        handle_of("register_fake(...)", given)
    assert refused.value.fields() == {
        "call": "register_fake(...)",
        "found": found,
        "library": False,
    }


def test_a_library_in_the_place_of_an_operator() -> None:
    given: Any = Library("mine", "FRAGMENT")
    with (
        given,
        pytest.raises(DefinitionRefused, check=code("NotAnOperator")) as refused,
    ):
        handle_of("impl(...)", given)
    assert str(refused.value) == (
        "impl(...) needs an operator; found a Library.\n"
        "  pass:    'namespace::name', ops.namespace.name.overload, or the result "
        "of\n"
        "           custom_op\n"
        "  or call: the method of the library: library.impl(name, kernel, key)"
    )


def test_the_text() -> None:
    with pytest.raises(TypeError) as refused:
        handle_of("register_fake(...)", 3)  # type: ignore[arg-type]  # the fault
    assert str(refused.value) == (
        "register_fake(...) needs an operator; found an int.\n"
        "  pass: 'namespace::name', ops.namespace.name.overload, or the result of\n"
        "        custom_op"
    )
    with pytest.raises(DefinitionRefused, check=code("NotQualified")):
        handle_of("register_fake(...)", "f")


X = tensor([1.0])


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    """End what the libraries of the module keep for ever."""
    yield
    while free_functions._KEPT:
        free_functions._KEPT.popitem()[1].close()


@pytest.fixture
def library() -> Iterator[Library]:
    with Library("mine", "FRAGMENT") as made:
        made.define("f(Tensor x) -> Tensor")
        yield made


def test_define_and_impl() -> None:
    made = define("mine::f", "(Tensor x, int n=2) -> Tensor", tags="pointwise")

    @impl("mine::f", "cpu")
    def kernel(x, n=2):  # type: ignore[no-untyped-def]  # gets no defaults
        return x * n

    assert repeatedly(lambda: ops.mine.f(X).tolist())[-1] == [2.0]
    assert kernel.__name__ == "kernel"
    assert ops.mine.f.default.tags == ("pointwise",)
    made.close()
    assert default_dispatcher().find_schema("mine::f") is None


def test_they_stay_without_being_kept_and_belong_to_a_library_if_one_is_given() -> None:
    define("mine::f", "(Tensor x) -> Tensor")
    assert ops.mine.f.default.has_schema
    with Library("mine", "FRAGMENT") as own:
        define("mine::g", "(Tensor x) -> Tensor", lib=own)
        impl("mine::g", "default", double, lib=own)
        assert ops.mine.g(X).tolist() == [2.0]
    assert "mine::g" not in default_dispatcher().op_names()
    with pytest.raises(Conflict, check=code("DuplicateDefinition")):
        define("mine::f", "(Tensor x) -> Tensor")


def test_what_is_no_definition() -> None:
    with pytest.raises(DefinitionRefused, check=code("NotQualified")):
        define("f", "(Tensor x) -> Tensor")
    with pytest.raises(DefinitionRefused, check=code("MalformedSignature")) as refused:
        define("mine::f", "Tensor x -> Tensor")
    assert str(refused.value) == (
        "The schema of `mine::f` is not of the form `(arguments) -> results`, "
        "without a\nname.\n"
        "  found: 'Tensor x -> Tensor'\n"
        "  write: '(Tensor x, int n=1) -> Tensor'"
    )


@pytest.mark.parametrize(
    ("types", "keys"),
    [
        ("default", ["CompositeExplicitAutograd"]),
        ("cpu", ["CPU"]),
        ("CPU", ["CPU"]),
        (("cpu", "cuda", "CPU"), ["CPU", "CUDA"]),
        ("CompositeImplicitAutograd", ["CompositeImplicitAutograd"]),
    ],
)
def test_what_types_are(library: Library, types: Any, keys: list[str]) -> None:
    impl("mine::f", types, double)
    assert [key for key in KEYS if ops.mine.f.default.has_kernel(key)] == keys


KEYS = ("CPU", "CUDA", "CompositeImplicitAutograd", "CompositeExplicitAutograd")


def test_what_is_no_type() -> None:
    with pytest.raises(UnknownDevice) as refused:
        impl("mine::f", "gpu", double)
    assert refused.value.__notes__ == [
        "`default` means all devices; dispatch keys are accepted as well"
    ]


def test_a_kernel_without_definition_is_taken() -> None:
    impl("mine::later", "cpu", double)
    assert "mine::later" in default_dispatcher().dangling_impls()


@pytest.mark.parametrize("form", ["text", "handle", "packet"])
def test_kernels_of_an_operator_of_a_library(library: Library, form: str) -> None:
    handle = ops.mine.f.default
    op: Any = {"text": "mine::f", "handle": handle, "packet": ops.mine.f}[form]

    @register_kernel(op, "cpu")
    def kernel(x: Tensor) -> Tensor:
        return x * 3

    @register_fake(op)
    def fake(x: Tensor) -> Tensor:
        return like(x)

    register_autograd(op, lambda ctx, g: g * 3)
    register_autocast(op, "cpu", "float16")
    assert kernel(X).tolist() == [3.0]
    assert ops.mine.f(tensor([1.0, 2.0], device="meta")).shape == (2,)
    assert fake is not kernel
    x = tensor([1.0], requires_grad=True)
    for result in repeatedly(lambda: ops.mine.f(x)):
        assert result.tolist() == [3.0]
    result.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0]
    with autocast("cpu"):
        assert ops.mine.f(X).dtype.name == "float16"


def test_autocast_to_nothing_is_refused(library: Library) -> None:
    nothing: Any = None
    with pytest.raises(AutogradMisuse, match=r"dtype=None\) does not exist"):
        register_autocast("mine::f", "cpu", nothing)


def test_the_newest_fake_wins(library: Library) -> None:
    register_fake("mine::f", like)
    register_fake("mine::f", lambda x: x.sum())
    assert ops.mine.f(tensor([1.0], device="meta")).shape == ()


@pytest.mark.parametrize(
    "register",
    [
        lambda op: register_fake(op, like),
        lambda op: register_autograd(op, lambda ctx, g: g),
    ],
)
def test_an_operator_that_is_not_there(library: Library, register: Any) -> None:
    with pytest.raises(LookupFailed, check=code("SchemaNotFound")) as refused:
        register("mine::ff")
    assert str(refused.value) == (
        "no schema is registered for mine::ff.\n  Near: mine::f."
    )


def test_a_fake_for_what_is_made_of_others() -> None:
    with Library("mine", "FRAGMENT") as library:
        library.define("f(Tensor x) -> Tensor", kernel=lambda x: x * 2)
        with pytest.raises(DefinitionRefused, check=code("FakeNotNeeded")) as refused:
            register_fake("mine::f", like)
    assert str(refused.value) == (
        "`mine::f` has a kernel at CompositeImplicitAutograd: it calls other "
        "operators,\n"
        "whose fake kernels it uses on meta tensors already.\n"
        "  to do: register fakes for the operators that it calls"
    )


def test_a_formula_for_what_writes() -> None:
    define("mine::f_", "(Tensor(a!) x) -> ()")
    with pytest.raises(DefinitionRefused, check=code("NotFunctional")):
        register_autograd("mine::f_", lambda ctx: None)


def test_a_formula_of_an_operator_that_is_defined_anew() -> None:
    define("mine::f", "(Tensor x) -> Tensor").close()
    with Library("mine", "FRAGMENT") as library:
        first = library.define("f(Tensor x) -> Tensor")
        register_autograd("mine::f", first_of, setup_context=count)
        first.close()
        library.define("f(Tensor x, Tensor y) -> Tensor")
        library.impl("f", lambda x, y: x * 2 + y * 0, "CPU")
        x = tensor([1.0], requires_grad=True)
        ops.mine.f(x, X).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [1.0]


def count(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.count = len(inputs)


def first_of(ctx: Any, gradient: Tensor) -> Any:
    return (gradient, None)[: ctx.count]


class Mode(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def test_for_a_custom_operator_they_are_its_methods() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        assert register_kernel("mine::f", "cpu", double) is double

        @register_fake("mine::f")
        def fake(x: Tensor) -> Tensor:
            return like(x)

        register_autograd(made, lambda ctx, g: g * 2)
        register_autocast(made.handle, "cpu", "float16")

        @register_torch_dispatch("mine::f", Mode)
        def rule(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return tensor([9.0])

        with Mode():
            assert made(X).tolist() == [9.0]
        assert made(tensor([1.0], device="meta")).shape == (1,)
        x = tensor([1.0], requires_grad=True)
        made(x).sum().backward()
        assert x.grad is not None
        assert free_functions._KEPT == {}
    assert "mine::f" not in default_dispatcher().op_names()


def test_a_rule_for_an_operator_of_a_library(library: Library) -> None:
    class Own(Mode):
        pass

    library.impl("f", double, "CPU")
    rule = lambda *given: tensor([9.0])  # noqa: E731  # short
    assert register_torch_dispatch("mine::f", Own, rule) is rule
    with Own():
        assert ops.mine.f(X).tolist() == [9.0]


@pytest.mark.parametrize(
    ("name", "register"),
    [
        ("register_fake", lambda op, **lib: register_fake(op, like, **lib)),
        ("register_kernel", lambda op, **lib: register_kernel(op, "cpu", like, **lib)),
        ("impl", lambda op, **lib: impl(op, "cpu", like, **lib)),
        (
            "register_autograd",
            lambda op, **lib: register_autograd(op, lambda ctx, g: g, **lib),
        ),
        (
            "register_autocast",
            lambda op, **lib: register_autocast(op, "cpu", "float16", **lib),
        ),
        (
            "register_torch_dispatch",
            lambda op, **lib: register_torch_dispatch(op, Mode, like, **lib),
        ),
    ],
)
def test_on_another_dispatcher_somebody_has_to_own_it(name: str, register: Any) -> None:
    dispatcher = Dispatcher()
    with Library("mine", dispatcher=dispatcher) as library:
        library.define("f(Tensor x) -> Tensor")
        handle = dispatcher.find_op("mine::f")
        assert handle is not None
        with pytest.raises(DefinitionRefused, check=code("LibraryNeeded")) as refused:
            register(handle)
        assert refused.value.fields() == {
            "call": f"{name}(...)",
            "operator": "mine::f",
        }
        before = len(library.tokens)
        register(handle, lib=library)
        assert len(library.tokens) == before + 1


def test_the_text_of_a_missing_library() -> None:
    dispatcher = Dispatcher()
    with Library("mine", dispatcher=dispatcher) as library:
        library.define("f(Tensor x) -> Tensor")
        handle = dispatcher.find_op("mine::f")
        assert handle is not None
        with pytest.raises(DefinitionRefused, check=code("LibraryNeeded")) as refused:
            impl(handle, "cpu", like)
    assert str(refused.value) == (
        "impl(...): `mine::f` is not on the default dispatcher, so the "
        "registration needs\n"
        "a library that owns it.\n"
        "  to do: pass lib=Library(namespace, 'FRAGMENT', dispatcher=...)"
    )


def test_keys_may_be_keys() -> None:
    assert free_functions._key_of("Meta") is DispatchKey.Meta


def here() -> str:
    """This place, one line further down in the caller, as dumps show it."""
    frame = sys._getframe(1)
    return f"(registered at {frame.f_code.co_filename}:{frame.f_lineno + 1})"


def test_dumps_say_where_it_was_registered() -> None:
    places = {"schema": here()[1:-1]}
    define("mine::f", "(Tensor x) -> Tensor")
    handle = ops.mine.f.default
    places["CPU: double"] = here()
    impl("mine::f", "cpu", double)
    places["CUDA: double"] = here()
    impl("mine::f", "cuda")(double)
    places["CompositeExplicitAutograd[alias]: double"] = here()
    register_kernel("mine::f", None)(double)
    places["Meta: like"] = here()
    register_fake("mine::f")(like)
    places["Autograd[alias]: lambda"] = here()
    register_autograd("mine::f", lambda ctx, g: g)
    places["AutocastCPU: autocast_to_bfloat16"] = here()
    register_autocast("mine::f", "cpu", "bfloat16")
    places["Tracer"] = here()[1:-1]
    impl("mine::f", "Tracer", fallthrough)
    lines = handle.dump_state().splitlines()
    assert f"debug: {places.pop('schema')}" in lines
    fall = places.pop("Tracer")
    assert any(line.startswith(f"Tracer: {fall} ::") for line in lines)
    for what, place in places.items():
        assert any(line.startswith(f"{what} {place}") for line in lines), what


def test_a_library_says_it_itself(library: Library) -> None:
    impl("mine::f", "cpu", double, lib=library)
    assert library.origin in ops.mine.f.default.dump_state().splitlines()[-1]


BOTH = X.keyset | KeySet([DispatchKey.CUDA])


def test_the_kernel_before_is_called_by_the_one_that_overrides() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        before = get_kernel("mine::f", "CPU")
        assert repr(before) == "<SavedKernel mine::f at CPU>"
        assert before.key is DispatchKey.CPU

        def over(keyset: KeySet, x: Tensor) -> Tensor:
            return before.call_boxed(keyset, x) + 1

        with Library("mine", "IMPL", "CPU") as library:
            library.impl("f", over)
            assert made(X).tolist() == [3.0]
            assert get_kernel(made, DispatchKey.CPU).call_boxed(
                X.keyset, X
            ).tolist() == [3.0]
        # It stays itself.
        made.register_kernel("cpu", lambda x: x * 5)
        assert before.call_boxed(X.keyset, X).tolist() == [2.0]


@pytest.mark.spec("dispatch 3.13", "a kept kernel whose operator is gone")
def test_it_works_as_long_as_the_operator_is_defined_by_whomever() -> None:
    made = custom_op("mine::f", double, mutates_args=())
    held = get_kernel("mine::f", "CPU")
    with custom_op("mine::f", lambda x: x * 5, mutates_args=(), schema=SCHEMA):
        assert made.closed
        assert held.call_boxed(X.keyset, X).tolist() == [2.0]
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        held.call_boxed(X.keyset, X)


SCHEMA = "(Tensor x) -> Tensor"


def test_the_keyset_is_cut_to_the_kernel_and_what_is_below() -> None:
    seen: list[KeySet] = []

    def note(keyset: KeySet, x: Tensor) -> Tensor:
        seen.append(keyset)
        return x * 2

    def passing(below: Any, keyset: KeySet) -> Any:
        seen.append(keyset)
        return below.run

    with Library("mine", "FRAGMENT") as library:
        library.define(f"f{SCHEMA}")
        library.impl("f", note, "CPU")
        library.impl("f", linked(passing, "passing"), "ADInplaceOrView")
        get_kernel("mine::f", "CPU").call_boxed(BOTH, X)
        get_kernel("mine::f", "ADInplaceOrView").call_boxed(X.keyset, X)
    cpu, view = DispatchKey.CPU, DispatchKey.ADInplaceOrView
    assert seen == [KeySet([cpu]), KeySet([cpu, view]), KeySet([cpu])]


def test_what_there_is_no_kernel_for() -> None:
    with custom_op("mine::f", double, mutates_args=()):
        for key in ("Batched", "Autograd"):
            with pytest.raises(LookupFailed, check=code("NoKernelForKey")) as refused:
                get_kernel("mine::f", key)
            assert refused.value.key == key
        with pytest.raises(LookupFailed, check=code("UnknownKey")):
            get_kernel("mine::f", "GPU")
        held = get_kernel(ops.mine.f, "CPU")
        with pytest.raises(CallError, check=code("MissingArgument")):
            held.call_boxed(X.keyset)
    with pytest.raises(LookupFailed, check=code("SchemaNotFound")):
        get_kernel("mine::f", "CPU")


def test_keywords_and_defaults() -> None:
    def scaled(x: Tensor, n: int = 3, *, m: int = 2) -> Any:
        return x * n * m

    schema = "(Tensor x, int n=3, *, int m=2) -> Tensor"
    with custom_op("mine::f", scaled, mutates_args=(), schema=schema):
        held = get_kernel("mine::f", "CPU")
        assert held.call_boxed(X.keyset, X).tolist() == [6.0]
        assert held.call_boxed(X.keyset, X, m=5, n=1).tolist() == [5.0]
