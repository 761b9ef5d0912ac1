"""Generated schemas and library programs: what they have, and what they leave."""

from hypothesis import HealthCheck, find, given, settings

from everyorder.invariants import check
from everyorder.runtime.dispatch import Dispatcher, Library
from everyorder.runtime.keys import SLOTS, DispatchKey
from everyorder.runtime.schema.declared import register_class
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.types import (
    NAMED_BASES,
    AwaitType,
    BaseType,
    ClassType,
    DictType,
    FutureType,
    ListType,
    OptionalType,
    RRefType,
    TupleType,
    Type,
    TypeVariable,
    UnionType,
)
from everyorder.runtime.strategies import (
    LibraryProgram,
    dispatch_keys,
    library_programs,
    schemas,
)

QUIET = settings(
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=list(HealthCheck),
)
register_class("generated.Thing")


def parts_of(whole: Type) -> set[Type]:
    return {whole}.union(*map(parts_of, whole.parts))


def types_of(schema: Schema) -> set[Type]:
    arguments = (*schema.arguments, *schema.returns)
    return set().union(*(parts_of(each.type) for each in arguments))


@QUIET
@given(schemas())
def test_a_schema_prints_as_text_that_parses_back(schema: Schema) -> None:
    assert parse_schema(str(schema)) == schema


def test_every_type_of_the_grammar_is_generated() -> None:
    seen: set[Type] = set()

    @settings(QUIET, max_examples=1_500)
    @given(schemas(classes=["generated.Thing"]))
    def note(schema: Schema) -> None:
        seen.update(types_of(schema))

    note()
    assert {type(each) for each in seen} == {
        *(BaseType, TypeVariable, ClassType, ListType, OptionalType, FutureType),
        *(AwaitType, RRefType, DictType, UnionType, TupleType),
    }
    assert {*NAMED_BASES.values()} <= seen


@QUIET
@given(schemas(variables=False))
def test_a_schema_without_variables_can_be_defined(schema: Schema) -> None:
    namespace = schema.name.namespace or "a"
    dispatcher = Dispatcher()
    with Library(namespace, "DEF", dispatcher=dispatcher) as library:
        library.define(schema)
        assert dispatcher.op_names() == (str(schema.name.with_namespace(namespace)),)


def test_a_kernel_can_be_registered_at_each_key() -> None:
    seen: set[DispatchKey] = set()

    @settings(QUIET, max_examples=1_000)
    @given(dispatch_keys())
    def note(key: DispatchKey) -> None:
        seen.add(key)
        with Library("a", "IMPL", dispatcher=Dispatcher()) as library:
            library.impl("f", print, key)

    note()
    assert seen == {*SLOTS, *(key for key in DispatchKey if key.is_alias)}
    find(dispatch_keys(aliases=False), lambda key: key.is_runtime)


@QUIET
@given(library_programs())
def test_a_program_breaks_no_law_and_leaves_nothing(program: LibraryProgram) -> None:
    dispatcher = Dispatcher(warns_of_overrides=False)
    before = dispatcher.snapshot()
    for _ in program.play(dispatcher):
        assert check(dispatcher.snapshot()) == []
    after = dispatcher.snapshot()
    assert (after.namespaces, after.claims) == (before.namespaces, before.claims)
    assert after.fallbacks.tokens == before.fallbacks.tokens


@QUIET
@given(library_programs())
def test_a_program_is_the_code_that_it_prints(program: LibraryProgram) -> None:
    exec(str(program), {})
    assert str(program).endswith("\n".join(program.lines))


def test_programs_have_every_call() -> None:
    calls = ("define", "impl", "fallback", "reserve", "close")
    for call in calls:
        find(
            library_programs(ends=False),
            lambda program, call=call: any(  # type: ignore[misc]  # a default
                f".{call}(" in line and "suppress" not in line for line in program.lines
            ),
            settings=settings(QUIET, max_examples=2_000),
        )
