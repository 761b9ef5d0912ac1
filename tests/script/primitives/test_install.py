"""Namespace `script` in the dispatcher: names, schemas, tags, and calls."""

import subprocess
import sys
from functools import partial
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.dispatch import Dispatcher, default_dispatcher
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.registration import Conflict
from everyorder.runtime.errors.tensor import ArithmeticRefused
from everyorder.runtime.script.primitives import NAMESPACE, ROWS, PrimitiveRow, install
from everyorder.runtime.script.primitives.primitive_table import install as again
from tests.coded import code
from tests.script.primitives.trial import (
    canonical,
    in_order,
    outcome,
    sample_arguments,
)


def test_every_row_is_an_operator_with_its_schema_and_tags() -> None:
    operators = getattr(runtime.ops, NAMESPACE)
    for row in ROWS:
        name = str(row.schema.name).partition("::")[2]
        base, _, overload = name.partition(".")
        handle = getattr(getattr(operators, base), overload)
        assert handle.schema == row.schema
        assert ("total" in handle.tags) == (not row.raises)
        assert set(row.tags) <= set(handle.tags)


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS])
def test_a_call_through_the_dispatcher_is_a_call_of_the_function(
    row: PrimitiveRow,
) -> None:
    base, _, overload = row.name.partition("::")[2].partition(".")
    call: Any = getattr(getattr(runtime.ops.script, base), overload)
    for sample in row.samples:
        args, kwargs = sample_arguments(sample)
        own = in_order(row, *sample_arguments(sample))
        came = outcome(partial(call, *args, **kwargs))
        wanted = outcome(partial(row.function, *own))
        assert (sample, came) == (sample, wanted)
        assert canonical(args) == canonical(own[: len(args)])


def test_the_default_dispatcher_is_installed_on_once() -> None:
    assert install() is again(default_dispatcher())
    with pytest.raises(Conflict, check=code("NamespaceTaken")):
        runtime.Library(NAMESPACE, "DEF")


def test_another_dispatcher_has_its_own_and_loses_it() -> None:
    dispatcher = Dispatcher()
    before = dispatcher.state
    library = install(dispatcher)
    assert len(library.tokens) == 2 * len(ROWS) + 1
    library.close()
    assert dispatcher.state.namespaces.get(NAMESPACE, {}) == {}
    assert before is not None


def test_what_is_written_to_is_the_list_of_the_caller() -> None:
    own = [1]
    runtime.ops.script.append.t(own, 2)
    assert runtime.ops.script.iadd.t(own, [3]) is own
    assert own == [1, 2, 3]
    table: dict[str, int] = {}
    runtime.ops.script.setitem.Dict_str(table, "a", 1)
    assert table == {"a": 1}
    with pytest.raises(CallError, check=code("WrongArgumentType")):
        runtime.ops.script.append.t((1,), 2)


def test_errors_come_through() -> None:
    with pytest.raises(ArithmeticRefused, check=code("IntegerOverflow")):
        runtime.ops.script.add.int(2**62, 2**62)


def test_the_namespace_is_there_when_it_is_asked_for() -> None:
    programs = (
        "from everyorder.runtime import ops; "
        "xs = [1]; ops.script.append(xs, 2); print(xs)",
        "from everyorder.runtime.script.ir import row_of; "
        "print(row_of('script::len.t').name)",
        "from everyorder import runtime; import sys; "
        "print('everyorder.runtime.script' in sys.modules)",
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", each], capture_output=True, text=True, check=True
        ).stdout
        for each in programs
    ]
    assert told == ["[1, 2]\n", "script::len.t\n", "False\n"]
