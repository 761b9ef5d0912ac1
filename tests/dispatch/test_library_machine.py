"""Libraries in random order, against a model that is small enough to be read.

Every public method of `Library` and `Registration` is a rule, and calls are, too.
After each the errors, the registrations and the answers of the dispatcher are compared.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from everyorder.runtime.dispatch import Library, fallthrough, transition
from everyorder.runtime.dispatch import dispatcher as dispatcher_module
from everyorder.runtime.dispatch import library as library_module
from everyorder.runtime.dispatch import registration as registration_module
from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.registration_record import (
    Claim,
    ClassRule,
    Definition,
    Fallback,
    Implementation,
    Reservation,
)
from everyorder.runtime.errors.base import EveryorderError
from tests.dispatch.library_model import (
    ALIAS,
    EXPLICIT,
    IMPLICIT,
    INT,
    TENSOR,
    Lib,
    Model,
    Record,
    Reg,
)
from tests.dispatch.samples import on, silent
from tests.mutants.mutant import adding, removing, replacing

# Few names and keys, and most of them allowed, so that calls meet.
NAMES = st.sampled_from(("f", "f", "f", "f.o"))
PREFIXES = st.sampled_from((*[""] * 8, "a", "a", "b"))
KEYS = st.sampled_from(
    (*[None] * 4, *["CPU"] * 8, IMPLICIT, EXPLICIT, EXPLICIT, ALIAS, "Dense", "CPUU")
)
SORTS = st.sampled_from(("plain", "plain", "int", "float", "through"))
FORMS = st.sampled_from((TENSOR, INT))
CLASSES: dict[str, type] = {"One": type("One", (), {}), "Two": type("Two", (), {})}


@dataclass(eq=False)
class Opened:
    """A library with its model; None once it is lost."""

    library: Library | None
    lib: Lib

    def parts(self) -> tuple[Library, Lib]:
        assert self.library is not None
        return self.library, self.lib


# Mostly a call is made on a library that allows it.
USUALLY = st.sampled_from((*[True] * 5, False))


class LibraryMachine(RuleBasedStateMachine):
    """The runtime beside the model."""

    libraries = Bundle("libraries")
    registrations = Bundle("registrations")

    def __init__(self) -> None:
        super().__init__()
        self.dispatcher = silent()
        self.built_in = {*self.dispatcher.state.fallbacks.tokens}
        self.model = Model()
        self.count, self.eager = 0, False
        # The labels of the kernels that a call ran.
        self.ran: list[str] = []
        self.handles: list[tuple[Any, Reg]] = []
        self.open: list[Opened] = []

    # -- How a call is compared.

    def label(self) -> str:
        self.count += 1
        return f"call {self.count}"

    def both(self, call: Callable[[], Any], expected: set[str]) -> Any:
        """The result of a call; None if it is refused, as the model says."""
        refused, result = "", None
        try:
            result = call()
        except EveryorderError as error:
            refused = type(error).__name__
        assert refused in (expected or {""}), f"{refused!r} instead of {expected}"
        return result

    def registered(self, made: Any, lib: Lib, records: list[Record]) -> Any:
        if made is None:
            return multiple()
        reg = Reg(lib)
        self.model.add(reg, records)
        self.handles.append((made, reg))
        return made, reg

    def suitable(self, other: Opened, usual: bool, ns: str, *kinds: str) -> Opened:
        """The newest library of a namespace and kind, or the other one."""
        for each in reversed(self.open) if usual else ():
            fits = each.lib.ns == ns and (not kinds or each.lib.kind in kinds)
            if fits and not each.lib.closed:
                return each
        return other

    def kernel(self, sort: str, label: str) -> Any:
        if sort == "through":
            return fallthrough

        def plain(*args: Any, **kwargs: Any) -> Any:
            self.ran.append(label)
            return args[-1]

        def whole(n: int) -> int:
            self.ran.append(label)
            return n

        def fraction(n: float) -> float:
            self.ran.append(label)
            return n

        return {"plain": plain, "int": whole, "float": fraction}[sort]

    # -- The rules.

    @initialize(target=libraries, eager=st.booleans())
    def begins(self, eager: bool) -> Any:
        """Open libraries; an eager sequence calls every operator after each rule."""
        self.eager = eager
        kinds = (("a", "DEF"), ("a", "FRAGMENT"), ("a", "IMPL"), ("_", "IMPL"))
        keyed = self.opens("a", "IMPL", "CPU")
        return multiple(keyed, *(self.opens(ns, kind, None) for ns, kind in kinds))

    @rule(
        target=libraries,
        ns=st.sampled_from((*"aaaaaaaa", *"bb", *"____", "2a", "None", "prim")),
        kind=st.sampled_from(("DEF", *["FRAGMENT"] * 3, *["IMPL"] * 3, "OTHER")),
        key=st.sampled_from((*[None] * 12, "CPU", "CPU", "Undefined", "CPUU")),
    )
    def opens(self, ns: str, kind: str, key: str | None) -> Any:
        lib = Lib(ns, kind, None if key == "Undefined" else key)
        made = self.both(
            lambda: Library(ns, kind, key, dispatcher=self.dispatcher),
            self.model.opening(lib),
        )
        if made is None:
            return multiple()
        claims = [Record("claim", value=ns)] if kind == "DEF" else []
        claimed = Reg(lib)
        self.model.add(claimed, claims)
        self.handles.append((None, claimed))
        self.open.append(opened := Opened(made, lib))
        return opened

    @rule(
        target=registrations,
        opened=libraries,
        usual=USUALLY,
        prefix=PREFIXES,
        name=NAMES,
        form=st.sampled_from((TENSOR, INT, "")),
        sort=st.sampled_from((None, None, "plain", "int", "float")),
        tag=st.sampled_from((*[""] * 8, "core", "nonsense")),
    )
    def defines(
        self,
        opened: Opened,
        usual: bool,
        prefix: str,
        name: str,
        form: str,
        sort: str | None,
        tag: str,
    ) -> Any:
        library, lib = self.suitable(opened, usual, "a", "DEF", "FRAGMENT").parts()
        label, full = self.label(), f"{lib.ns}::{name}"
        written = f"{prefix}::{name}" if prefix else name
        inferred = {"int": INT, "float": "(float n) -> float"}.get(sort or "", "")
        schema = form or inferred
        kernel = None if sort is None else self.kernel(sort, label)
        if not form and sort is None:
            return multiple()  # it is only a name: the parser refuses it
        made = self.both(
            lambda: library.define(
                f"{written}{form}",
                kernel=kernel,
                tags=[tag] if tag else (),
                debug=label,
            ),
            self.model.defining(lib, prefix, full, schema, sort or "", tag),
        )
        records = [Record("definition", full, value=schema)]
        if sort is not None:
            records.append(Record("kernel", full, IMPLICIT, sort, label))
        return self.registered(made, lib, records)

    @rule(
        target=registrations,
        opened=libraries,
        usual=USUALLY,
        prefix=PREFIXES,
        name=NAMES,
        sort=SORTS,
        keys=st.one_of(KEYS.map(lambda key: [key]), st.lists(KEYS, max_size=2)),
        override=st.booleans(),
    )
    def implements(
        self,
        opened: Opened,
        usual: bool,
        prefix: str,
        name: str,
        sort: str,
        keys: list[str | None],
        override: bool,
    ) -> Any:
        library, lib = self.suitable(opened, usual, "a").parts()
        label, full = self.label(), f"{lib.ns}::{name}"
        written = f"{prefix}::{name}" if prefix else name
        one = (
            keys[0]
            if len(keys) == 1
            else ["Undefined" if k is None else k for k in keys]
        )
        made = self.both(
            lambda: library.impl(
                written,
                self.kernel(sort, label),
                one,
                allow_override=override,
                debug=label,
            ),
            self.model.implementing(lib, prefix, full, sort, keys, override),
        )
        places = dict.fromkeys(key or lib.key or IMPLICIT for key in keys)
        records = [Record("kernel", full, key, sort, label) for key in places]
        return self.registered(made, lib, records)

    @rule(
        target=registrations,
        opened=libraries,
        usual=USUALLY,
        key=st.sampled_from((None, "CPU", "CUDA", "Tracer", ALIAS, "Dense", "CPUU")),
        sort=st.sampled_from(("plain", "through")),
    )
    def falls_back(
        self, opened: Opened, usual: bool, key: str | None, sort: str
    ) -> Any:
        library, lib = self.suitable(opened, usual, "_").parts()
        label = self.label()
        made = self.both(
            lambda: library.fallback(self.kernel(sort, label), key, debug=label),
            self.model.falling_back(lib, key),
        )
        record = Record("fallback", key=key or lib.key or "", value=sort, label=label)
        return self.registered(made, lib, [record])

    @rule(
        target=registrations,
        opened=libraries,
        usual=USUALLY,
        prefix=PREFIXES,
        name=NAMES,
    )
    def reserves(self, opened: Opened, usual: bool, prefix: str, name: str) -> Any:
        library, lib = self.suitable(opened, usual, "a").parts()
        written = f"{prefix}::{name}" if prefix else name
        made = self.both(
            lambda: library.reserve(written), self.model.naming(lib, prefix)
        )
        return self.registered(made, lib, [Record("reservation", f"{lib.ns}::{name}")])

    @rule(
        target=registrations,
        opened=libraries,
        usual=USUALLY,
        prefix=PREFIXES,
        name=NAMES,
        cls=st.sampled_from(sorted(CLASSES)),
    )
    def adds_a_rule(
        self, opened: Opened, usual: bool, prefix: str, name: str, cls: str
    ) -> Any:
        library, lib = self.suitable(opened, usual, "a").parts()
        label, full = self.label(), f"{lib.ns}::{name}"
        written = f"{prefix}::{name}" if prefix else name
        made = self.both(
            lambda: library.rule(written, CLASSES[cls], print, debug=label),
            self.model.ruling(lib, prefix, full, cls),
        )
        return self.registered(
            made, lib, [Record("rule", full, value=cls, label=label)]
        )

    @rule(pair=registrations, way=st.sampled_from(("close", "with")))
    def ends(self, pair: Any, way: str) -> None:
        """Also a second time, and after the library was closed."""
        made, reg = pair
        if way == "close":
            made.close()
        else:
            with made:
                pass
        self.model.end(reg)

    def end_of(self, lib: Lib) -> None:
        lib.closed = True
        self.model.end(*(reg for _, reg in self.handles if reg.lib is lib))

    @rule(opened=libraries, way=st.sampled_from(("close", "with", "_destroy")))
    def closes(self, opened: Opened, way: str) -> None:
        library, lib = opened.parts()
        with library if way == "with" else nullcontext():
            pass
        if way != "with":
            getattr(library, way)()
        self.end_of(lib)

    @rule(opened=consumes(libraries))
    def loses(self, opened: Opened) -> None:
        """A lost library is ended by the next writer."""
        opened.library = None
        self.open.remove(opened)
        self.end_of(opened.lib)

    @rule()
    def calls(self) -> None:
        """In between, so that what is cached for calls becomes old."""
        for ns in "ab":
            for name in ("f", "f.o"):
                self.call(f"{ns}::{name}")

    def call(self, full: str) -> None:
        self.ran.clear()
        handle = self.dispatcher.find_op(full)
        definitions = self.model.of("definition", full)
        assert (handle is None) == (full not in self.model.names())
        if handle is None:
            return
        number = not definitions or definitions[0].value != TENSOR
        try:
            handle.call(1 if number else on("CPU"))
        except EveryorderError:
            assert not self.ran
        runs = self.model.runs(full) if definitions else None
        assert self.ran == ([] if runs is None else [runs])

    # -- What is compared after each rule.

    @invariant()
    def calls_agree(self) -> None:
        # As the next registration would: lost libraries are removed.
        self.dispatcher.drain()
        if self.eager:
            self.calls()

    @invariant()
    def dispatchers_agree(self) -> None:
        model, dispatcher = self.model, self.dispatcher
        names = model.names()
        assert list(dispatcher.op_names()) == names
        assert list(dispatcher.dangling_impls()) == [
            name
            for name in names
            if model.of("kernel", name) and not model.of("definition", name)
        ]
        for key in ("CPU", "CUDA", IMPLICIT, EXPLICIT, ALIAS):
            expected = [name for name in names if model.kernels(name, key)]
            assert list(dispatcher.registrations_for(key)) == expected
        for name in names:
            self.entries_agree(name)
        state = dispatcher.snapshot()
        assert sorted(claim.namespace for claim in state.claims) == sorted(
            record.value for record in model.of("claim")
        )
        added = [t for t in state.fallbacks.tokens if t not in self.built_in]
        assert sorted(token.debug for token in added) == sorted(
            record.label for record in model.of("fallback")
        )
        rules = [rule for entry in _all_entries(state) for rule in entry.rules]
        assert sorted((r.text, r.cls.__name__) for r in rules) == sorted(
            (record.name, record.value) for record in model.of("rule")
        )

    def entries_agree(self, name: str) -> None:
        entry = self.dispatcher.entry(name)
        assert entry is not None
        schema = self.dispatcher.find_schema(name)
        # An inferred schema has names of its own.
        forms = [None] if schema is None else [_form(schema)]
        definitions = self.model.of("definition", name)
        assert forms == [_shape(d.value) for d in definitions] or (
            forms == [None] and not definitions
        )
        assert {
            key.name: [kernel.debug for kernel in kernels]
            for key, kernels in entry.implementations.items()
        } == {
            key: [record.label for record in self.model.kernels(name, key)]
            for key in {record.key for record in self.model.of("kernel", name)}
        }
        assert len(entry.reservations) == len(self.model.of("reservation", name))

    @invariant()
    def handles_agree(self) -> None:
        for made, reg in self.handles:
            if made is not None:
                assert made.closed is not self.model.is_live(reg)
        for library, lib in map(Opened.parts, self.open):
            own = [reg for _, reg in self.handles if reg.lib is lib]
            records = [r for reg in own for r in reg.records if r in self.model.live]
            assert len(library.tokens) == len(records)

    def teardown(self) -> None:
        self.dispatcher.drain()
        for library, _ in map(Opened.parts, self.open):
            library.close()
        state = self.dispatcher.snapshot()
        assert not state.namespaces
        assert not state.claims
        assert {*state.fallbacks.tokens} == self.built_in


def _all_entries(state: Any) -> list[Any]:
    return [entry for each in state.namespaces.values() for entry in each.values()]


def _form(schema: Any) -> tuple[str, ...]:
    parts = (*schema.arguments, *schema.returns)
    return tuple(str(each.type) for each in parts)


def _shape(text: str) -> tuple[str, ...]:
    argument, _, result = text.removeprefix("(").partition(") -> ")
    return argument.partition(" ")[0], result


# Chosen by no clock and kept by no database: the same sequences everywhere.
FEW = settings(
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=100,
    stateful_step_count=50,
    suppress_health_check=list(HealthCheck),
)
MANY = settings(FEW, max_examples=2_000, stateful_step_count=50)


def test_libraries_agree_with_the_model() -> None:
    run_state_machine_as_test(LibraryMachine, settings=FEW)


@pytest.mark.slow
def test_libraries_agree_with_the_model_in_many_sequences() -> None:
    run_state_machine_as_test(LibraryMachine, settings=MANY)


# -- Planted faults: each is found.

Patch = Callable[[], AbstractContextManager[object]]


def _does_nothing(right: Any) -> Any:
    return lambda *args, **kwargs: None


def _keeps(right: Any) -> Any:
    return lambda state, token: state


def _oldest_first(right: Any) -> Any:
    def wrong(state: Any, token: Any) -> Any:
        after = right(state, token)
        place = token.reading
        entry = after.find(place.namespace, place.text)
        kernels = {key: each[::-1] for key, each in entry.implementations.items()}
        return transition._with_kernels(after, place, entry, kernels, 0)

    return wrong


def _keeps_the_table(right: Any) -> Any:
    def wrong(state: Any, token: Any) -> Any:
        place = token.reading
        before, after = state.find(place.namespace, place.text), right(state, token)
        entry = after.find(place.namespace, place.text)
        if before is None or entry is None:
            return after
        return transition._replace(after, place, entry._replace(table=before.table))

    return wrong


def _forgets_all(right: Any) -> Any:
    def wrong(state: Any, token: Any) -> Any:
        entry = state.find(token.namespace, token.text)
        total = entry.total - len(entry.reservations)
        empty = entry._replace(reservations=(), total=total, memo={})
        return transition._replace(state, token, empty)

    return wrong


def _one_only(right: Any) -> Any:
    def wrong(dispatcher: Any, ledger: Any, keys: Any, tokens: Any) -> Any:
        return right(dispatcher, ledger, keys, tokens[:1])

    return wrong


def _takes_the_first_key(right: Any) -> Any:
    return lambda self, op, argument: right(self, op, argument)[:1]


def _is_open(right: Any) -> Any:
    return property(lambda self: False)


FAULTS: dict[str, Patch] = {
    "a removed kernel stays": removing(Implementation, _keeps),
    "a removed fallback stays": removing(Fallback, _keeps),
    "a removed claim stays": removing(Claim, _keeps),
    "a removed rule stays": removing(ClassRule, _keeps),
    "a removed definition stays": removing(Definition, _keeps),
    "the oldest kernel wins": adding(Implementation, _oldest_first),
    "a new kernel is not called": adding(Implementation, _keeps_the_table),
    "a removed kernel is called": removing(Implementation, _keeps_the_table),
    "one reservation ends all": removing(Reservation, _forgets_all),
    "a second definition is accepted": replacing(
        transition, "_check_second_definition", _does_nothing
    ),
    "a kernel of another signature is accepted": replacing(
        transition, "check_kernel_fits", _does_nothing
    ),
    "a schema that no kernel fits is accepted": replacing(
        transition, "_check_pair", _does_nothing
    ),
    "allow_override=False overrides": replacing(
        dispatcher_module, "check_no_override", _does_nothing
    ),
    "closing a library ends one registration": replacing(
        library_module, "take_down", _one_only
    ),
    "of several keys the first is registered": replacing(
        Library, "_keys", _takes_the_first_key
    ),
    "a library serves another key": replacing(Library, "_check_key", _does_nothing),
    "a closed library registers": replacing(Library, "_check_open", _does_nothing),
    "the kinds of libraries are not checked": replacing(
        library_module, "check_kind", _does_nothing
    ),
    "a registration never says it is closed": replacing(
        registration_module.Registration, "closed", _is_open
    ),
    "a lost library stays": replacing(Dispatcher, "drain", _does_nothing),
}
# Without shrinking: that it is found is enough.
SEARCH = settings(
    FEW, max_examples=2_000, phases=[Phase.generate], report_multiple_bugs=False
)


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    with FAULTS[name](), pytest.raises(AssertionError):
        run_state_machine_as_test(LibraryMachine, settings=SEARCH)
