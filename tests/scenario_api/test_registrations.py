from collections.abc import Callable
from typing import Any

import pytest

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario import (
    Step,
    define,
    fallback,
    impl,
    library,
    listen,
    merges_alias_kinds,
    reserve,
    shared,
    together,
)
from everyorder.harness.scenario.registrations import (
    KnowingListener,
    Refused,
    operator_of,
)
from everyorder.harness.systems.dispatcher import RecordingDispatcher
from everyorder.runtime.dispatch import Dispatcher, fallthrough, fingerprint
from everyorder.runtime.errors.registration import Conflict
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema import parse_schema
from tests.coded import code
from tests.scenarios.kernels import keyed, no_cpu, on_cpu, stacked, typed_one

TEXTS: list[tuple[Step, str]] = [
    (define("a::b(Tensor x) -> Tensor"), 'define("a::b(Tensor x) -> Tensor")'),
    (
        define("a::b() -> ()", "PURE_FUNCTION", kind="DEF", debug='the "b"'),
        'define("a::b() -> ()", "PURE_FUNCTION", kind="DEF", debug="the \\"b\\"")',
    ),
    (
        define("a::b", kernel=typed_one, tags=iter(["pointwise", "core"])),
        'define("a::b", kernel=typed_one, tags=["pointwise", "core"])',
    ),
    (
        define('a::b(str x="c\\\\d") -> ()'),
        'define("a::b(str x=\\"c\\\\\\\\d\\") -> ()")',
    ),
    (impl("a::b", on_cpu), 'impl("a::b", on_cpu)'),
    (impl("a::b", stacked, "CPU"), 'impl("a::b", stacked, "CPU")'),
    (
        impl("a::b", on_cpu, iter(["CPU", "Meta"])),
        'impl("a::b", on_cpu, ["CPU", "Meta"])',
    ),
    (
        impl(
            "a::b",
            keyed,
            "CPU",
            library_key="CPU",
            with_keyset=True,
            allow_override=False,
            kind="FRAGMENT",
            debug="mine",
        ),
        'impl("a::b", keyed, "CPU", library_key="CPU", with_keyset=True, '
        'allow_override=False, kind="FRAGMENT", debug="mine")',
    ),
    (fallback(fallthrough, "Tracer"), 'fallback(fallthrough, "Tracer")'),
    (
        fallback(no_cpu, "CPU", with_keyset=True, debug="all"),
        'fallback(no_cpu, "CPU", with_keyset=True, debug="all")',
    ),
    (reserve("a::b.c"), 'reserve("a::b.c")'),
    (library("a"), 'library("a", "DEF")'),
    (library("a", "IMPL", "CPU"), 'library("a", "IMPL", "CPU")'),
    (listen(), "listen()"),
    (listen(refuses=["a::b"]), 'listen(refuses=["a::b"])'),
    (merges_alias_kinds(), "merges_alias_kinds()"),
    (shared(reserve("a::b"))[0], 'shared(reserve("a::b"))'),
    (
        together(library("a"), reserve("a::b")),
        'together(library("a", "DEF"), reserve("a::b"))',
    ),
]


@pytest.mark.parametrize(("made", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_text(made: Step, text: str) -> None:
    assert made.text == text


@pytest.mark.parametrize(
    ("made", "operators"),
    [
        (define("a::b.c(Tensor x) -> Tensor"), ("a::b.c",)),
        (define("a::b", kernel=typed_one), ("a::b",)),
        (impl("a::b", on_cpu), ("a::b",)),
        (fallback(no_cpu, "CPU"), ()),
        (library("a"), ()),
        (listen(), ()),
        (together(reserve("a::b"), reserve("a::c"), reserve("a::b")), ("a::b", "a::c")),
    ],
)
def test_operators(made: Step, operators: tuple[str, ...]) -> None:
    assert made.operators == operators


def prepared(target: Dispatcher, *steps: Step) -> list[Any]:
    return [each.prepare(target, f"step {n}") for n, each in enumerate(steps, 1)]


@pytest.mark.parametrize(
    "made",
    [
        define("a::b(Tensor x) -> Tensor"),
        define("a::b(Tensor x) -> Tensor", tags=["core"], debug="here"),
        define("a::b(Tensor x) -> Tensor", kind="DEF", kernel=typed_one),
        impl("a::b", on_cpu, ["CPU", "Meta"]),
        impl("a::b", keyed, with_keyset=True, allow_override=False),
        fallback(no_cpu, "CPU"),
        reserve("a::b"),
        library("a"),
        listen(),
        together(library("a"), impl("a::b", on_cpu)),
    ],
    ids=str,
)
def test_preparing_changes_nothing_and_closing_takes_all_back(made: Step) -> None:
    target = Dispatcher(warns_of_overrides=False)
    before = fingerprint(target.snapshot())
    (perform,) = prepared(target, made)
    assert fingerprint(target.snapshot()) == before
    handle = perform()
    during = fingerprint(target.snapshot())
    assert during != before
    handle.close()
    assert fingerprint(target.snapshot()) == before
    perform().close()
    again = perform()
    assert fingerprint(target.snapshot()) == during
    again.close()


def test_origin_is_the_step() -> None:
    target = Dispatcher()
    performs = prepared(
        target,
        define("a::b(Tensor x) -> Tensor"),
        impl("a::b", on_cpu, "CPU"),
        impl("a::b", on_cpu, "Meta", debug="mine"),
    )
    held = [perform() for perform in performs]
    assert target.dump_state("a::b") == (
        "name: a::b\nschema: a::b(Tensor x) -> Tensor\ndebug: step 1\n"
        "alias analysis kind: FROM_SCHEMA\n"
        "CPU: on_cpu (step 2) :: (none) [ boxed ]\nMeta: mine :: (none) [ boxed ]\n"
    )
    assert len(held) == 3


def test_a_def_step_claims_its_namespace() -> None:
    target = Dispatcher()
    first, second = prepared(
        target,
        define("a::b(Tensor x) -> Tensor", kind="DEF"),
        define("a::c(Tensor x) -> Tensor", kind="DEF"),
    )
    handle = first()
    with pytest.raises(Conflict, check=code("NamespaceTaken")):
        second()
    handle.close()
    second().close()
    assert target.op_names() == ()


def test_a_def_step_that_fails_gives_its_namespace_back() -> None:
    target = Dispatcher()
    define_it, claim_and_define = prepared(
        target,
        define("a::b(Tensor x) -> Tensor"),
        define("a::b(Tensor x) -> Tensor", kind="DEF"),
    )
    handle = define_it()
    with pytest.raises(Conflict, check=code("DuplicateDefinition")):
        claim_and_define()
    assert target.snapshot().claims == ()
    handle.close()


NO_NAMESPACE = "operator 'b' without a namespace; expected its full name, as in 'ns::b'"
# What a type checker would tell, too.
UNCHECKED: Any = impl


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (lambda: impl("b", on_cpu), NO_NAMESPACE),
        (lambda: define("b(Tensor x) -> Tensor"), NO_NAMESPACE),
        (lambda: reserve("b"), NO_NAMESPACE),
        (
            lambda: UNCHECKED("a::b", "CPU", on_cpu),
            "str 'CPU' as a kernel; expected a callable or runtime.fallthrough",
        ),
        (
            lambda: UNCHECKED("a::b", None),
            "NoneType None as a kernel; expected a callable or runtime.fallthrough",
        ),
    ],
)
def test_slips_are_told_where_the_step_is_written(
    step: Callable[[], Step], text: str
) -> None:
    with pytest.raises(NotAScenario) as caught:
        step()
    assert str(caught.value) == f"a scenario cannot use {text}."


def test_together_takes_back_what_came_before_a_failure() -> None:
    target = Dispatcher()
    claim, both = prepared(
        target,
        library("a"),
        together(
            define("a::b(Tensor x) -> Tensor"),
            impl("a::b", on_cpu, "CPU"),
            library("a"),
        ),
    )
    handle = claim()
    before = fingerprint(target.snapshot())
    with pytest.raises(Conflict, check=code("NamespaceTaken")):
        both()
    assert fingerprint(target.snapshot()) == before
    handle.close()
    both().close()
    assert target.op_names() == ()


def test_together_closes_last_first_and_once() -> None:
    said: list[str] = []

    class Handle:
        def __init__(self, name: str) -> None:
            self.name = name

        def close(self) -> None:
            said.append(self.name)

    made = together(
        Step("first", lambda _, __: lambda: Handle("first")),
        Step("second", lambda _, __: lambda: Handle("second")),
    )
    handle = made.prepare(None, "step 1")()
    assert said == []
    handle.close()
    handle.close()
    assert said == ["second", "first"]


def test_a_setting_is_no_registration() -> None:
    target = Dispatcher()
    (perform,) = prepared(target, merges_alias_kinds())
    seen = [target.snapshot().merges_alias_kinds]
    handle = perform()
    seen.append(target.snapshot().merges_alias_kinds)
    handle.close()
    seen.append(target.snapshot().merges_alias_kinds)
    assert (seen, target.op_names()) == ([False, True, True], ())


def test_steps_share_one_library_of_each_kind() -> None:
    target = RecordingDispatcher()
    performs = prepared(
        target,
        *shared(
            define("a::b(Tensor x) -> Tensor"),
            impl("a::b", on_cpu, "CPU", kind="FRAGMENT"),
            impl("a::b", on_cpu, "Meta"),
        ),
        impl("a::b", on_cpu, "CUDA"),
    )
    held = [perform() for perform in performs]
    assert target.dump_state("a::b").splitlines()[4:] == [
        "CPU: on_cpu (step 1) :: (none) [ boxed ]",
        "CUDA: on_cpu (step 4) :: (none) [ boxed ]",
        "Meta: on_cpu (step 1) :: (none) [ boxed ]",
    ]
    ((_, libraries),) = target.effects.libraries.values()
    shown = [(each.kind, len(each.tokens)) for each in libraries.values()]
    assert shown == [("FRAGMENT", 2), ("IMPL", 1)]
    held[1].close()
    assert [len(each.tokens) for each in libraries.values()] == [1, 1]
    for handle in held:
        handle.close()
    assert target.op_names() == ()
    target.effects.end_all()
    assert target.effects.libraries == {}


def test_systems_do_not_share_libraries() -> None:
    steps = shared(reserve("a::b"), reserve("a::b"))
    one, other = RecordingDispatcher(), RecordingDispatcher()
    performs = [*prepared(one, *steps), *prepared(other, *steps)]
    held = [perform() for perform in performs]
    held[0].close()
    held[1].close()
    assert (one.op_names(), other.op_names()) == ((), ("a::b",))


def test_a_listener_refuses_what_it_is_told_to() -> None:
    target = Dispatcher()
    listening, refused, other = prepared(
        target,
        listen(refuses=["a::b"]),
        define("a::b(Tensor x) -> Tensor"),
        define("a::c(Tensor x) -> Tensor"),
    )
    handle = listening()
    with pytest.raises(Refused, match="a::b"):
        refused()
    kept = other()
    assert target.op_names() == ("a::c",)
    handle.close()
    kept.close()
    definition = refused()
    with pytest.raises(Refused, match="a::b"):
        listening()
    assert target.state.subscriptions == ()
    definition.close()


def test_known_lists_schemas_sorted() -> None:
    known = KnowingListener()
    schemas = [parse_schema("a::c() -> ()"), parse_schema("a::b() -> ()")]
    assert known.shown() == "nothing"
    for schema in schemas:
        known.on_operator_registered(schema.name, schema)
    assert known.shown() == "a::b() -> (), a::c() -> ()"
    known.on_operator_deregistered(schemas[1].name, schemas[1])
    assert known.shown() == "a::c() -> ()"


@pytest.mark.parametrize(
    "schema", ["a::b.c(Tensor x) -> Tensor", "a::b.c", parse_schema("a::b.c() -> ()")]
)
def test_operator_of(schema: Any) -> None:
    assert str(operator_of(schema)) == "a::b.c"


def test_a_fallback_is_registered_by_the_step_alone() -> None:
    target = Dispatcher()
    (perform,) = prepared(target, fallback(no_cpu, "CPU"))
    slot = DispatchKey.CPU.slot
    assert slot is not None
    assert target.snapshot().fallbacks.slots[slot] is None
    handle = perform()
    held = target.snapshot().fallbacks.slots[slot]
    assert held is not None
    assert held.debug == "no_cpu (step 1)"
    handle.close()
