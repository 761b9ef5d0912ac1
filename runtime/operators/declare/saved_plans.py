"""Saved plans: the decisions of a CPU call, reused by later calls like it.

Calls are alike if their tensors have the same geometry (shape, dtype, strides) and
their other arguments are equal in type and value: 1, True and 1.0 are three numbers,
0.0 and -0.0 are two, NaN is one.  The shapes and dtypes of the results are saved, and
the kernel prepared for them; a call then makes its results and runs it:

    key of the call ── saved ───────> make the results ──> run(*arrays)
                  └─── unknown, or not reusable ──> the general path

A key that occurs a second time is planned on tensors without elements, so that neither
the plan nor the kernel can see a value.  `READY[name](*outputs, *arguments)` of the
kernels receives a geometry for each tensor, and returns the prepared kernel, which is
called with an array for each tensor among the arguments and then one for each output.
The called function is generated for the kinds of the arguments, as call stubs are.

Rules:
- the result equals that of the general path, by construction: the same plan decides,
  and a kernel itself runs its prepared form;
- a call whose plan casts, starts with a copy, or permutes memory uses the general path,
  and so do calls with wrapped numbers and tensors of other devices;
- decisions that depend on more than the key belong to each call: kernels check
  values, `parallel_for` the threads, `host_tensor` inference mode; no exception is
  saved;
- a new key of an operator with `MOST` of them evicts the oldest; threads may lose each
  other's entries, but never mix them: an entry is set once, whole.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from numpy import empty

from everyorder.runtime.base.codegen import block, numbered, template
from everyorder.runtime.base.locks import load
from everyorder.runtime.operators.declare.allocate_outputs import (
    REFUSALS,
    made_dtype,
    order_of,
    prepared,
)
from everyorder.runtime.operators.declare.plan import CPU, CallPlan, Work
from everyorder.runtime.tensors.construction import host_tensor
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from everyorder.runtime.tensors.shape import is_contiguous
from everyorder.runtime.tensors.storage import Storage
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of

# The most keys of one operator: programs use few, and an entry is about a kilobyte.
MOST = 256
Function = Callable[..., Any]

# run, and for each output the number of elements, NumPy's dtype, the shape, the dtype;
# empty for a call that needs the general path.
Ready = tuple[Any, ...]

# For each argument of an operator, a key of `_KEYS`.
Kinds = tuple[str, ...]
NEVER: Ready = ()
_UNKNOWN = object()

# In place of the strides of a tensor that has no array to run on.
_NOWHERE = False


class SavedPlans(dict[Any, Ready | None]):
    """The saved plans of one operator, by key; None for a key that occurred once."""

    __slots__ = ("find", "general")

    def __init__(self, find: Callable[..., Ready], general: Function) -> None:
        super().__init__()
        self.find = find
        self.general = general

    def first(self, key: Any, *arguments: Any) -> Any:
        """Run the general path; save the plan if the key occurs a second time."""
        entry = self.get(key, _UNKNOWN)
        if entry is None:
            self[key] = self.find(*arguments)
        elif entry is _UNKNOWN:
            self.note(key)
        return self.general(*arguments)

    def note(self, key: Any) -> None:
        """Store a new key; evict the oldest ones if there are too many."""
        while len(self) >= MOST:
            try:
                del self[next(iter(self))]
            except (KeyError, RuntimeError, StopIteration):
                continue  # another thread has changed the dictionary
        self[key] = None


def saving_plans(
    call: str,
    arguments: str,
    results: int,
    plan: Function,
    own: str | Work,
    general: Function,
) -> Function:
    """Return an operator's functional form on the CPU, which saves its plans.

    `arguments` are the schema's, `plan` is the operator's, `own` its kernel; `general`
    executes any call.
    """
    kinds = kinds_of(arguments)

    def find(*values: Any) -> Ready:
        try:
            return ready_for(plan, own, kinds, values)
        except REFUSALS as error:
            error.operator = call
            raise

    return _saved(kinds, results)(SavedPlans(find, general), call)


# Decisions.


def ready_for(
    plan: Function, own: str | Work, kinds: Kinds, arguments: Sequence[Any]
) -> Ready:
    """Return the saved form of a call like this one.  Raises the errors of the plan."""
    slots = [_hollow(each) for each in arguments]
    if any(each is _UNKNOWN for each in slots):
        return NEVER
    planned: CallPlan = plan(*slots)
    values = _computed(planned)
    name = planned.kernel or own
    if values is None or not isinstance(name, str):
        return NEVER
    kernels = load("everyorder.runtime.kernels.cpu")
    ready, geometry = kernels.READY.get(name), kernels.Geometry
    tensors = [each for each, kind in zip(slots, kinds, strict=True) if kind in TENSORS]
    places = [_place(each, tensors) for each in values if _has_tensors(each)]
    if ready is None or None in places:
        return NEVER
    outputs = [each for each in planned.outputs if each is not None]
    parts = [_geometry_of(each, geometry) for each in values]
    run = ready(*(geometry(*each, None) for each in outputs), *parts)
    if run is None:
        return NEVER
    if places != list(range(len(tensors))):
        run = _picker(len(tensors), tuple(places), len(outputs))(run)
    facts = [(prod(each[0]), numpy_dtype(each[1]), *each) for each in outputs]
    return run, *(fact for each in facts for fact in each)


def _computed(plan: CallPlan) -> Sequence[Any] | None:
    """Return the kernel's arguments; None if the call needs more than the kernel."""
    compute, values = plan.compute, plan.arguments
    outputs = [each for each in plan.outputs if each is not None]
    steps = plan.strides
    if (
        plan.device is not CPU
        or plan.start is not None
        or len(outputs) < len(plan.outputs)
        or (plan.pointwise and order_of(plan) is not None)
        or (steps is not None and not is_contiguous(outputs[0][0], steps))
    ):
        return None
    if compute is None:
        return values
    cast = range(len(values)) if plan.cast is None else plan.cast
    read = [values[at].dtype for at in cast if isinstance(values[at], Tensor)]
    if any(dtype is not compute for dtype in read) or any(
        made_dtype(dtype, compute) is not dtype for _, dtype in outputs
    ):
        return None
    return prepared(values, compute, plan.cast, CPU, {})


def _hollow(value: Any) -> Any:
    """Return a tensor of the same geometry without elements; other values unchanged.

    `_UNKNOWN` for a tensor without an array.
    """
    if isinstance(value, list) and value and isinstance(value[0], Tensor):
        hollow = [_hollow(each) for each in value]
        return _UNKNOWN if any(each is _UNKNOWN for each in hollow) else hollow
    if not isinstance(value, Tensor):
        return value
    _, strides = lying(value)
    if strides is _NOWHERE:
        return _UNKNOWN
    result = host_tensor(None, value._shape, value._dtype)
    if strides is not None:
        result._place = Storage(None, CPU, value._dtype, 0), 0, strides
    return result


def lying(tensor: Tensor) -> tuple[Any, Any]:
    """Return the array from the first element on, and its strides, None if dense."""
    if tensor.number is None:
        flat, place = flat_of(tensor), tensor._place
        if flat is not None:
            return flat, None
        array = None if place is None else place[0].array
        if place and array is not None and place[0].dtype is tensor._dtype:
            return array[place[1] :], place[2]
    return None, _NOWHERE


def _has_tensors(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(isinstance(each, Tensor) for each in value)
    return isinstance(value, Tensor)


def _place(value: Any, tensors: Sequence[Any]) -> int | None:
    """Return the index of a tensor, or a list of them, among `tensors`, or None."""
    for place, each in enumerate(tensors):
        lists = isinstance(value, list) and isinstance(each, list)
        if value is each or (lists and [*map(id, value)] == [*map(id, each)]):
            return place
    return None


def _geometry_of(value: Any, geometry: Function) -> Any:
    """Return a tensor's geometry, or any other value itself, to prepare a kernel."""
    if isinstance(value, list):
        return [_geometry_of(each, geometry) for each in value]
    if not isinstance(value, Tensor):
        return value
    place = value._place
    return geometry(value.shape, value.dtype, None if place is None else place[2])


# The called function.

# Schema type -> the text of the argument in the key.
_KEYS = {
    "Tensor": "_n{at}, {name}._dtype, _s{at}",
    "Tensor?": "_k{at}",
    "Tensor[]": "_k{at}",
    # Equal numbers that differ are represented by their text: zeros, NaN, and complex
    # numbers with parts that are zeros.
    "float": "{name} if {name} and {name} == {name} else _repr({name})",
    "Scalar": (
        "_type({name}), {name} if {name} and {name} == {name}"
        " and _type({name}) is not _complex else _repr({name})"
    ),
    "list": "None if {name} is None else _tuple({name})",
    # Converted by the schema: equal values have one type.
    "": "{name}",
}

TENSORS = ("Tensor", "Tensor?", "Tensor[]")


def kinds_of(arguments: str) -> Kinds:
    """Return the kind of each argument of a schema, as in the table of keys."""
    kinds = []
    for each in arguments.split(","):
        word = each.split()[0]
        if word == "*":
            continue
        if word in _KEYS:
            kinds.append(word)
        elif "[" in word:
            kinds.append("list")
        else:
            kinds.append("Scalar" if word == "Scalar?" else "")
    return tuple(kinds)


def listed(tensors: Sequence[Tensor]) -> tuple[Any, Any]:
    """Return the arrays of several tensors, and their geometries in one tuple.

    A geometry ends with the dtype; it starts with the strides if they were looked up.
    """
    arrays: list[Any] = []
    geometries: list[Any] = []
    for each in tensors:
        flat, shape = each._flat, each._shape
        if flat is None or not shape or each._device is not CPU:
            flat, strides = lying(each)
            if each._device is not CPU:
                strides = _NOWHERE
            geometries.append(strides)
        arrays.append(flat)
        geometries.append(shape)
        geometries.append(each._dtype)
    return arrays, tuple(geometries)


# The names in the generated text of a call.
NAMES: dict[str, Any] = {
    "_CPU": CPU,
    "_MemoryError": MemoryError,
    "_REFUSED": REFUSALS,
    "_complex": complex,
    "_empty": empty,
    "_host": host_tensor,
    "_listed": listed,
    "_lying": lying,
    "_repr": repr,
    "_tuple": tuple,
    "_type": type,
}


@template(
    "saved plans",
    "_memory, _call",
    **NAMES,
)
def _saved(kinds: Kinds, results: int) -> list[str]:
    """Return the text of the function for arguments of these kinds."""
    names = [f"_x{at}" for at in range(len(kinds))]
    parameters = ", ".join(names)
    lines = []
    for at, (kind, name) in enumerate(zip(kinds, names, strict=True)):
        own = [
            f"_a{at}, _n{at}, _s{at} = {name}._flat, {name}._shape, None",
            f"if _a{at} is None or not _n{at}:",
            f"    _a{at}, _s{at} = _lying({name})",
            f"if {name}._device is not _CPU:",
            f"    return _general({parameters})",
        ]
        if kind == "Tensor":
            lines += own
        elif kind == "Tensor?":
            own.append(f"_k{at} = _n{at}, {name}._dtype, _s{at}")
            lines += [f"if {name} is None:", f"    _a{at} = _k{at} = None"]
            lines += block("else:", own)
        elif kind == "Tensor[]":
            lines.append(f"_a{at}, _k{at} = _listed({name})")
    keys = [
        _KEYS[kind].format(at=at, name=name)
        for at, (kind, name) in enumerate(zip(kinds, names, strict=True))
    ]
    arrays = [f"_a{at}" for at, kind in enumerate(kinds) if kind in TENSORS]
    indices = range(results)
    facts = "".join(f", _c{at}, _f{at}, _z{at}, _d{at}" for at in indices)
    lines += [
        f"_key = {', '.join(keys)},",
        "_ready = _get(_key)",
        "if not _ready:",
        f"    return _first(_key, {parameters})",
        f"_run{facts} = _ready",
        "try:",
        *(f"    _o{at} = _empty(_c{at}, _f{at})" for at in indices),
        f"    _run({', '.join([*arrays, *(f'_o{at}' for at in indices)])})",
        "except _MemoryError:",
        f"    return _general({parameters})",
        "except _REFUSED as _error:",
        "    _error.operator = _call",
        "    raise",
        f"return {', '.join(f'_host(_o{at}, _z{at}, _d{at})' for at in indices)}",
    ]
    return [
        "_get, _first, _general = _memory.get, _memory.first, _memory.general",
        *block(f"def saved({parameters}):", lines),
    ]


@template("saved plans", "run")
def _picker(count: int, places: tuple[int, ...], results: int) -> list[str]:
    """Return the text of a function that passes the arrays at some places on."""
    outputs = [f"o{at}" for at in range(results)]
    parameters = ", ".join([numbered(count), *outputs] if count else outputs)
    passed = ", ".join([*[f"a{at}" for at in places], *outputs])
    return block(f"def pick({parameters}):", [f"return run({passed})"])
