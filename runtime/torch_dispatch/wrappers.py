"""Classes of tensors: the check of a class, and the protocol of wrapper classes.

A class whose tensors have a handler is checked before its first tensor is created
(`check_class`). A *wrapper* contains other tensors. Code that does not know its class
can process the wrapper if the class defines

    def __tensor_flatten__(self):             # the attributes with tensors, a context
        return ["values", "scale"], self.axis

    @staticmethod
    def __tensor_unflatten__(tensors, context, size, strides):
        return Scaled(tensors["values"], tensors["scale"], context)

`flatten` decomposes a wrapper, however nested, down to tensors that are not wrappers;
`unflatten` rebuilds a wrapper from such tensors. Both check the results of the class. A
context holds all data that the tensors do not, and should be comparable: wrappers with
equal plans differ only in their tensors.

`return_and_correct_aliasing` is the last line of a wrapper's handler:

    out = wrap(func(*unwrap(args), **unwrap(kwargs)))
    return return_and_correct_aliasing(func, args, kwargs, out)

A wrapper that a handler creates is a separate tensor, also where the operator returns a
view of its argument, or the argument itself. The correction has three steps (the same
as upstream's):

1. a result that shows an argument that is not written to gets its storage; shape and
   strides stay those of the result;
2. an operator with the tag `inplace_view` changed the shape of the wrapped tensor; it
   is run once more on the wrapper itself, which has no elements to change twice;
3. results that *are* written arguments are replaced by these very objects.

The live schema of the operator finds the arguments, however they were passed; the
sharing of its results is computed once, and cached with the reading of its definition.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import getattr_static
from types import FunctionType
from typing import Any, NamedTuple

from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.errors.torch_dispatch import HandlerError, SubclassError
from everyorder.runtime.schema.call_errors import describe_value
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import ensure_place
from everyorder.runtime.torch_dispatch.modes import no_dispatch


def check_class(cls: type, call: str) -> None:
    """Check that tensors of `cls` can be created; `call` names the creating function.

    Raises:
        SubclassError: it is not a subclass of Tensor.
        HandlerError: its handler is not a function.
        HandlerError: its handler is not a classmethod.
    """
    if not isinstance(cls, type) or not issubclass(cls, Tensor) or cls is Tensor:
        is_class = isinstance(cls, type)
        raise SubclassError(
            code="NotATensorClass",
            call=call,
            argument="cls",
            expected="a subclass of Tensor",
            found=f"the class {cls.__name__}" if is_class else describe_value(cls),
        )
    handler = cls.__torch_dispatch__
    if handler is not None and not callable(handler):
        raise HandlerError(
            code="HandlerNotCallable",
            handler=f"{cls.__qualname__}.__torch_dispatch__",
            found=describe_value(handler),
        )
    # A classmethod is bound; an unbound function may still be a staticmethod.
    if type(handler) is FunctionType and isinstance(
        getattr_static(cls, "__torch_dispatch__"), FunctionType
    ):
        raise HandlerError(
            code="PlainHandler", handler=f"{cls.__qualname__}.__torch_dispatch__"
        )


PROTOCOL = ("__tensor_flatten__", "__tensor_unflatten__")

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WrapperPlan:
    """The data to rebuild a wrapper from tensors.

    Attributes:
        cls: the class of the wrapper.
        names: the attributes that hold tensors.
        context: the other data of the class.
        size, strides: those of the wrapper.
        inner: for each name the plan of its value; None if that is not a wrapper.
    """

    cls: type[Tensor]
    names: tuple[str, ...]
    context: Any
    size: Ints
    strides: Ints
    inner: tuple["WrapperPlan | None", ...]

    @property
    def count(self) -> int:
        """Return the number of tensors in a flattened wrapper."""
        return sum(1 if plan is None else plan.count for plan in self.inner)


class Flattened(NamedTuple):
    """A flattened wrapper: tensors that are not wrappers, in order, and the plan."""

    tensors: tuple[Tensor, ...]
    plan: WrapperPlan


def is_traceable_wrapper_subclass(value: object) -> bool:
    """Return True for a tensor of a subclass that has both methods of the protocol."""
    return isinstance(value, Tensor) and is_traceable_wrapper_subclass_type(type(value))


def is_traceable_wrapper_subclass_type(cls: type) -> bool:
    """Return True if tensors of that class can be flattened and rebuilt."""
    return (
        issubclass(cls, Tensor)
        and cls is not Tensor
        and all(hasattr(cls, name) for name in PROTOCOL)
    )


def flatten(wrapper: Tensor) -> Flattened:
    """Return the tensors inside of a wrapper, and in the wrappers inside of it.

    Raises:
        SubclassError: its class lacks the protocol, or half of it.
        SubclassError: `__tensor_flatten__` returned no names, or names of other values.
    """
    plan, tensors = _flatten(wrapper)
    return Flattened(tuple(tensors), plan)


def unflatten(tensors: Sequence[Tensor], plan: WrapperPlan) -> Any:
    """Return the wrapper that the plan builds from these tensors.

    Raises:
        SubclassError: the plan is for another number of tensors.
        SubclassError: `__tensor_unflatten__` returned another class or another shape.
    """
    if len(tensors) != plan.count:
        raise SubclassError(
            code="WrongTensorCount",
            cls=plan.cls.__name__,
            expected=plan.count,
            found=len(tensors),
        )
    return _put_together(iter(tensors), plan)


def _flatten(wrapper: Tensor) -> tuple[WrapperPlan, list[Tensor]]:
    kind = type(wrapper)
    missing = tuple(name for name in PROTOCOL if not hasattr(kind, name))
    if missing or not isinstance(wrapper, Tensor):
        raise SubclassError(code="NotAWrapper", cls=kind.__name__, missing=missing)
    names, context = _parts(wrapper)
    tensors: list[Tensor] = []
    inner: list[WrapperPlan | None] = []
    for name in names:
        value = getattr(wrapper, name, None)
        if not isinstance(value, Tensor):
            problem = f"the name {name!r}, which is not an attribute with a tensor"
            raise _wrong_parts(wrapper, problem)
        if value is wrapper:
            raise _wrong_parts(wrapper, f"the name {name!r}, which is itself")
        if is_traceable_wrapper_subclass(value):
            plan, deeper = _flatten(value)
            inner.append(plan)
            tensors += deeper
        else:
            inner.append(None)
            tensors.append(value)
    return (
        WrapperPlan(kind, names, context, wrapper.shape, wrapper.strides, tuple(inner)),
        tensors,
    )


def _parts(wrapper: Any) -> tuple[tuple[str, ...], Any]:
    """Return the checked names and the context from `__tensor_flatten__`."""
    parts = wrapper.__tensor_flatten__()
    if not isinstance(parts, (list, tuple)):
        raise _wrong_parts(wrapper, f"a {type(parts).__name__}")
    if len(parts) != 2:
        raise _wrong_parts(wrapper, f"a {type(parts).__name__} of {len(parts)}")
    names, context = parts
    if not isinstance(names, (list, tuple)):
        raise _wrong_parts(wrapper, f"a {type(names).__name__} for the names")
    for name in names:
        if not isinstance(name, str):
            problem = f"a {type(name).__name__} for the name of an attribute"
            raise _wrong_parts(wrapper, problem)
    return tuple(names), context


def _wrong_parts(wrapper: object, problem: str) -> SubclassError:
    return SubclassError(code="WrongParts", cls=type(wrapper).__name__, found=problem)


def _put_together(tensors: Iterator[Tensor], plan: WrapperPlan) -> Any:
    tensors_by_name = {
        name: next(tensors) if inner is None else _put_together(tensors, inner)
        for name, inner in zip(plan.names, plan.inner, strict=True)
    }
    kind: Any = plan.cls
    wrapper = kind.__tensor_unflatten__(
        tensors_by_name, plan.context, plan.size, plan.strides
    )
    if type(wrapper) is not kind:
        raise SubclassError(
            code="WrongWhole",
            cls=kind.__name__,
            expected=f"a `{kind.__name__}`",
            found=f"a `{type(wrapper).__name__}`",
        )
    if wrapper.shape != plan.size:
        raise SubclassError(
            code="WrongWhole",
            cls=kind.__name__,
            expected=f"one of shape {plan.size}",
            found=f"one of shape {wrapper.shape}",
        )
    return wrapper


class SharedMemory(NamedTuple):
    """The memory that the results of a schema share with its arguments, by places.

    `shown`: pairs of an argument that is not written to and a result that shows it.
    `written`: the written arguments that are results.
    """

    shown: tuple[tuple[int, int], ...]
    written: tuple[int, ...]


def return_and_correct_aliasing(
    func: OperatorHandle,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    out: Any,
) -> Any:
    """Return the result of a handler for `func(*args, **kwargs)`, corrected from `out`.

    Raises:
        HandlerError: a wrapper's view has another class than the wrapper.
        HandlerError: `out` does not fit the operator's returns.
        HandlerError: some results are written arguments and others are not, or an
            operator that changes the shape of its arguments changes several.
        CallError: the arguments do not fit the schema.
    """
    reading = func.reading
    schema = reading.schema
    aliases: SharedMemory | None = reading.memo.get("aliases")
    if aliases is None:
        aliases = reading.memo["aliases"] = correctable_aliases(schema)
    if not aliases.shown and not aliases.written:
        return out
    values = func.bind(tuple(args), kwargs or {})
    for place, number in aliases.shown:
        result = _results(func, schema, out)[number]
        for each in result if isinstance(result, (list, tuple)) else (result,):
            _share(func, schema.arguments[place].name, values[place], each)
    if "inplace_view" in func.tags:
        _reshape(func, schema, values, args, kwargs or {})
    if not aliases.written:
        return out
    if len(schema.returns) == 1:
        return values[aliases.written[0]]
    kind = list if isinstance(out, list) else tuple
    return kind(values[place] for place in aliases.written)


def correctable_aliases(schema: Schema) -> SharedMemory:
    """Return the aliases of a schema, if results can be corrected by them.

    Raises:
        HandlerError: only some of the results are written arguments.
    """
    aliases = aliases_of(schema)
    if aliases.written and len(aliases.written) != len(schema.returns):
        raise HandlerError(
            code="UnsupportedAliases",
            operator=str(schema.name),
            reason="some results are arguments that were written to, and some are not",
            schema=str(schema),
        )
    return aliases


def aliases_of(schema: Schema) -> SharedMemory:
    """Return the memory that the results of a schema share with its arguments."""
    views, written = [], []
    for number, result in enumerate(schema.returns):
        for place, argument in enumerate(schema.arguments):
            if argument.sets_before.isdisjoint(result.sets_before):
                continue
            if not argument.is_write:
                views.append((place, number))
            elif result.is_write:
                written.append(place)
                break
    return SharedMemory(tuple(views), tuple(written))


def _results(func: OperatorHandle, schema: Schema, out: Any) -> Sequence[Any]:
    count = len(schema.returns)
    if count == 1:
        return (out,)
    if not isinstance(out, (list, tuple)) or len(out) != count:
        several = isinstance(out, (list, tuple))
        actual = f"{len(out)} of them" if several else f"a {type(out).__name__}"
        raise HandlerError(
            code="WrongResultCount", operator=str(func), expected=count, found=actual
        )
    return out


def _share(func: OperatorHandle, name: str, argument: Any, result: Any) -> None:
    """Put `result` on the storage of `argument`, keeping its shape and strides."""
    if not isinstance(argument, Tensor) or not isinstance(result, Tensor):
        return
    wrappers = map(is_traceable_wrapper_subclass, (argument, result))
    if any(wrappers) and type(argument) is not type(result):
        raise HandlerError(
            code="WrapperOfAnotherClass",
            operator=str(func),
            argument=name,
            expected=type(argument).__name__,
            found=type(result).__name__,
        )
    _, offset, strides = ensure_place(result)
    result._place = ensure_place(argument)[0], offset, strides
    result._flat = None


def _reshape(
    func: Callable[..., Any],
    schema: Schema,
    values: Sequence[Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> None:
    """Apply an operator that changes the shape of its argument to the wrapper too."""
    changed = [
        value
        for argument, value in zip(schema.arguments, values, strict=False)
        if argument.is_write and value is not None
    ]
    if len(changed) != 1:
        raise HandlerError(
            code="UnsupportedAliases",
            operator=str(schema.name),
            reason=f"it changes the shape of {len(changed)} arguments; one can be "
            "followed",
            schema=str(schema),
        )
    with no_dispatch():
        func(*args, **kwargs)
