"""Results: from what a handler returned to what its operator returns.

True only here: the identity of what was written to.  An operator whose results are the
arguments that it wrote to returns these very objects, whatever its handler made of
them; other results convert as those of any Python kernel.

Rules: a result that does not fit names the handler; a view that a handler made as a
wrapper of its own counts its versions together with the argument that it shows.
"""

from collections.abc import Callable, Sequence
from typing import Any

from runtime.dispatch.token import ClassRule
from runtime.errors.call import KernelError
from runtime.errors.python_dispatch import WrongHandlerResult
from runtime.schema.argument import Argument
from runtime.schema.excerpt import shortened
from runtime.schema.returns import returner
from runtime.schema.schema import Schema
from runtime.tensors.storage import WrapperStorage
from runtime.tensors.tensor import Tensor

# (what the handler returned, all arguments, the mode or tensor) -> the result
Finish = Callable[[Any, Sequence[Any], Any], Any]


def handler_name(handler: Any) -> str:
    """The handler of a tensor or a mode, or a rule, as errors name it."""
    if isinstance(handler, ClassRule):
        return f"the rule of {handler.cls.__qualname__}, {handler.debug}"
    return f"{type(handler).__qualname__}.__torch_dispatch__"


def finisher(schema: Schema) -> Finish:
    """The function that makes the operator's result of a handler's."""
    convert = returner(schema)

    def converted(value: Any, handler: Any) -> Any:
        try:
            result = convert(value)
        except KernelError as error:
            problem = _problem(error)
        else:
            found = _foreign(result)
            if not found:
                return result
            problem = f"{found}, which has keys and is no tensor"
        raise WrongHandlerResult(
            handler=handler_name(handler),
            operator=str(schema.name),
            problem=problem,
            schema=str(schema),
        )

    written = _written(schema)
    if written is not None:
        return _identical(written, converted)
    shown = _shown(schema)
    if shown is not None:
        return _counting(shown, converted)
    return lambda value, arguments, handler: converted(value, handler)


def _identical(written: tuple[int, ...], converted: Callable[..., Any]) -> Finish:
    def finish(value: Any, arguments: Sequence[Any], handler: Any) -> Any:
        converted(value, handler)
        if len(written) == 1:
            return arguments[written[0]]
        return tuple(arguments[place] for place in written)

    return finish


def _counting(shown: int, converted: Callable[..., Any]) -> Finish:
    def finish(value: Any, arguments: Sequence[Any], handler: Any) -> Any:
        result = converted(value, handler)
        origin = arguments[shown]
        for each in result if isinstance(result, (list, tuple)) else (result,):
            place = getattr(each, "_place", None)
            if place is None or each is origin:
                continue
            storage = place[0]
            if isinstance(storage, WrapperStorage):
                storage.counts_with(origin.storage())
        return result

    return finish


def _written(schema: Schema) -> tuple[int, ...] | None:
    """The argument that each result is, if all results are written arguments."""
    places = []
    for result in schema.returns:
        place = _origin(schema, result)
        if place is None or not result.is_write:
            return None
        places.append(place)
    return tuple(places) or None


def _shown(schema: Schema) -> int | None:
    """The argument that the results are views of, if nothing is written."""
    if not schema.returns or not schema.is_view:
        return None
    return _origin(schema, schema.returns[0])


def _origin(schema: Schema, result: Argument) -> int | None:
    for place, argument in enumerate(schema.arguments):
        if argument.sets_before & result.sets_before:
            return place
    return None


def _foreign(result: Any) -> str:
    """What passes for a tensor and is none, for instance the class itself; or ""."""
    if isinstance(result, (list, tuple)):
        return next(filter(None, map(_foreign, result)), "")
    if isinstance(result, Tensor) or not hasattr(result, "key_bits"):
        return ""
    return shortened(result)


def _problem(error: KernelError) -> str:
    """What does not fit, without the words for kernels."""
    found, value = getattr(error, "found", ""), getattr(error, "value", None)
    expected = getattr(error, "expected", "")
    if value is None:
        noun = "value" if found == 1 else "values"
        return f"{found} {noun}; the operator has {expected}"
    position = getattr(error, "position", None)
    where = "" if position is None else f" at position {position}"
    return f"{found} {value}{where}; {expected} belongs there"
