"""Faults in the types of programs: their order, their normal form, what they share.

True only here: a fault, and the assertion of a test that it breaks.  The tests of these
rules are their laws: they compare with tables that were written by hand.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from everyorder.runtime.schema import (
    annotation,
    declared,
    schema,
    subtyping,
    types,
    values,
)
from everyorder.runtime.schema.types import FutureType, Type
from everyorder.runtime.script.types import annotations, python_classes
from tests.mutants.mutant import afresh, replacing
from tests.schema import (
    test_annotation,
    test_common_types,
    test_declared,
    test_schema,
    test_subtyping,
    test_types,
    test_values,
)
from tests.script.types import test_annotations, test_python_classes


@dataclass(frozen=True)
class TypeMutant:
    """`finds` is an assertion that the fault breaks, and that holds without it."""

    name: str
    what: str
    finds: Callable[[], object]
    patch: Callable[[], AbstractContextManager[object]]


def _always(answer: Any) -> Callable[[Any], Any]:
    return lambda _: lambda *_, **__: answer


def _same(_: Any) -> Callable[[Any], Any]:
    return lambda each, *_: each


def _shallow(right: Any) -> Any:
    """As upstream has it: only lists and optionals are looked into."""

    def wrong(each: Type) -> Type:
        return each if isinstance(each, types.TupleType | FutureType) else right(each)

    return wrong


def _takes_a_pair_for_granted(right: Any) -> Any:
    """What was assumed stays so, whether it was true or not."""

    def wrong(left: Any, to: Any, assumed: Any) -> bool:
        before = {**assumed.fits}
        fits: bool = right(left, to, assumed)
        assumed.fits = {**before, (left, to): None} if not fits else assumed.fits
        assumed.misfits.clear()
        return fits

    return wrong


def _overwrites(self: Any, name: str) -> None:
    for known in (self._attributes, self._methods, self._constants):
        known.pop(name, None)


def _remembers_no_text(right: Any) -> Any:
    def wrong(self: Any, text: str) -> Type:
        if len(self._texts) < 5:
            found: Type = right(self, f"{text} ")
            return found
        return types.IntType

    return wrong


def _keeps(self: Any, python: type, made: Type) -> None:
    self._known[python] = made


TYPES: tuple[TypeMutant, ...] = (
    TypeMutant(
        "a_type_is_made_twice",
        "two calls make two objects of one type",
        partial(
            test_types.test_there_is_one_object_for_each_type,
            lambda: FutureType(FutureType(types.CapsuleType)),
        ),
        replacing(types, "_one", lambda _: lambda key, made: made),
    ),
    TypeMutant(
        "names_of_tuples_are_forgotten",
        "tuples with names fit those of other names",
        partial(
            test_subtyping.test_unrelated,
            "NamedTuple(P, x: int)",
            "NamedTuple(Q, x: int)",
        ),
        replacing(subtyping, "_name", _always(())),
    ),
    TypeMutant(
        "methods_are_compared_by_name",
        "whatever has methods of these names fits an interface",
        test_subtyping.test_an_interface_says_what_does_not_fit,
        replacing(subtyping, "_fault", _always(None)),
    ),
    TypeMutant(
        "what_was_assumed_stays",
        "a pair that does not fit is taken for granted by the next one",
        test_subtyping.test_what_relied_on_a_pair_that_does_not_fit_is_looked_at_again,
        replacing(subtyping, "_fits", _takes_a_pair_for_granted),
    ),
    TypeMutant(
        "symbolic_integers_inside_of_others",
        "a tuple of symbolic integers is none of integers",
        partial(
            test_subtyping.test_inside_other_types_symbolic_integers_are_integers,
            FutureType,
        ),
        replacing(subtyping, "fake", _shallow),
    ),
    TypeMutant(
        "unions_stay_nested",
        "a union may be the member of a union",
        partial(
            test_common_types.test_an_optional_is_outermost_and_said_once,
            types.UnionType((types.IntType, types.NoneType_, types.StrType)),
            "Union(int, str)?",
        ),
        replacing(subtyping, "_flatten", _same),
    ),
    TypeMutant(
        "the_order_of_kinds_is_ignored",
        "the members of a union are in the order of their texts alone",
        partial(
            test_common_types.test_a_union_has_one_normal_form,
            (types.TensorType, types.BoolType),
            "Union(Tensor, bool)",
        ),
        replacing(subtyping, "_rank", lambda _: lambda member: str(member).lower()),
    ),
    TypeMutant(
        "what_is_less_counts",
        "a union below a tuple has nothing in common with another tuple",
        partial(
            test_common_types.test_the_least_common_type,
            "Union((int,int),(None,int)) (int?,int) (int,int?)",
            "(int?, int?)",
        ),
        replacing(subtyping, "_is_highest", _always(True)),
    ),
    TypeMutant(
        "none_is_forgotten",
        "what is an int or None is an int",
        partial(test_common_types.test_the_least_common_type, "int None", "int?"),
        replacing(subtyping, "optional", _same),
    ),
    TypeMutant(
        "a_conflict_is_overlooked",
        "the first member of a union is taken, whatever its variable stands for",
        partial(
            test_subtyping.test_what_variables_stand_for,
            "t Union(t[],t1)",
            "int str[]",
            {"t": "int", "t1": "str[]"},
        ),
        replacing(subtyping, "_is_solvable", _always(True)),
    ),
    TypeMutant(
        "variables_are_not_replaced",
        "a list is not compared with what its variable stands for in the end",
        partial(
            test_subtyping.test_why_a_type_does_not_match,
            "t[] t",
            "int[] Scalar",
            0,
            "int[] is no Scalar[]",
        ),
        replacing(subtyping, "substitute", _same),
    ),
    TypeMutant(
        "a_list_of_a_variable_is_a_list_of_its_own",
        "a list of anything is not the list of tensors that it is",
        partial(
            test_schema.test_pairs,
            "f(t[](a) x) -> Tensor[](a)",
            alias=True,
            contain=True,
        ),
        replacing(schema, "variables", _always(frozenset())),
    ),
    TypeMutant(
        "objects_hold_nothing",
        "a module does not hold its tensors",
        partial(
            test_schema.test_objects_of_programs_hold_what_their_attributes_hold,
            "f(__torch__.net.Layer x) -> Tensor(*)",
            contain=True,
        ),
        replacing(schema, "_elements", lambda _: lambda each: each.parts),
    ),
    TypeMutant(
        "an_attribute_is_said_twice",
        "what has been said of a class is said anew",
        test_declared.test_what_has_been_said_stays,
        replacing(declared.Declaration, "_free", lambda _: _overwrites),
    ),
    TypeMutant(
        "a_half_declared_class_stays",
        "what speaks of a class that could not be declared is kept",
        partial(
            test_python_classes.test_what_cannot_be_declared_is_refused_again, "Holder"
        ),
        replacing(python_classes.PythonClasses, "_keep", lambda _: _keeps),
    ),
    TypeMutant(
        "a_name_without_an_end",
        "a name that means itself means something in the end",
        partial(
            test_annotations.test_a_name_that_means_itself,
            {"A": "list[A]"},
            "`list[A]` means itself",
        ),
        replacing(annotations.TypeScope, "written", _remembers_no_text),
    ),
    TypeMutant(
        "a_union_of_numbers_is_every_number",
        "in a program, an int or a float is any number",
        partial(
            test_annotation.test_a_resolver_says_what_annotations_of_a_program_mean,
            int | float,
            "Scalar",
            "Union(float, int)",
        ),
        replacing(
            annotation,
            "_union_type",
            lambda right: lambda members, resolver: right(members, None),
        ),
    ),
    TypeMutant(
        "any_object_is_of_a_class",
        "an object of another class is taken for one of the declared class",
        partial(
            test_values.test_values_of_programs,
            "__torch__.tree.Node",
            test_values.LAYER_OBJECT,
            test_values.NO,
        ),
        afresh(
            replacing(values, "_declared", _always(lambda value: value)),
            values.converter,
        ),
    ),
)
