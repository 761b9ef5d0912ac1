"""None is refused where an operator takes a tensor, by name, in every form."""

from typing import Any

import pytest

from everyorder.runtime.errors.call import CallError
from tests.coded import code
from tests.opinfo.info import OpInfo, handle, on_cpu
from tests.opinfo.table import ROWS
from tests.opinfo.test_schemas import dtype_for


def cases(called: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The calls with one required tensor, or one of a list, exchanged for None."""
    schema = called.schema
    names = [argument.name for argument in schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    for argument in schema.arguments:
        value = given.get(argument.name)
        if str(argument.type) == "Tensor" and argument.name in given:
            yield argument.name, {**given, argument.name: None}
        elif str(argument.type) == "Tensor[]" and value:
            yield argument.name, {**given, argument.name: [*value, None]}


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_none_is_no_tensor(row: OpInfo) -> None:
    args, kwargs = row.samples(dtype_for(row))[0].bound(on_cpu)
    called = handle(row.name)
    # Twice as often as an operator needs to get a call stub, which refuses as well.
    for name, call in [*cases(called, args, kwargs)] * 16:
        given = call.copy()
        positional = [a for a in called.schema.arguments if not a.kwarg_only]
        bound = [given.pop(a.name) for a in positional if a.name in given]
        with pytest.raises(CallError, check=code("WrongArgumentType")) as refused:
            called(*bound, **given)
        assert refused.value.argument == name
        assert refused.value.expected.startswith("Tensor")
        assert f"`{called.schema.name}`" in str(refused.value)


def test_optional_tensors_may_be_left_out() -> None:
    x = on_cpu(ROWS[0].samples("float32")[0].args[0])
    for _ in range(16):
        handle("layer_norm")(x, [x.shape[-1]], None, None)
