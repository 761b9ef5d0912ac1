"""Saved plans: what a call on the CPU decided, kept for the next one like it.

Calls are alike if their tensors have one geometry each (shape, dtype, strides) and
their other arguments are equal in type and value: 1, True and 1.0 are three numbers,
0.0 and -0.0 are two, NaN is one.  Kept are the shapes and dtypes of the results and the
kernel made ready for them; a call then makes its results and runs it:

    key of the call ── saved ───────> make the results ──> run(*arrays)
                  └─── unknown, or nothing fits ──> the general way

How it works: a key that is met a second time is planned on tensors without elements, so
that neither the plan nor the kernel can see a value.  `READY[name](*outputs,
*arguments)` of the kernels gets a geometry for each tensor, and gives what is run with
an array for each tensor among the arguments and then one for each output.  The function
that is called is generated for the kinds of the arguments, as call stubs are.

Rules:
- the result is that of the general way, by construction: the same plan decides, and a
  kernel itself runs what it makes ready;
- what a plan would cast, begin with a copy, or turn in memory goes the general way, and
  so do wrapped numbers and tensors of other devices;
- what depends on more than the key is decided by each call: kernels look at values,
  `parallel_for` at threads, `host_tensor` at inference mode; no exception is kept;
- for a new key of an operator with `MOST` of them the oldest is forgotten; threads may
  lose each other's entries, never mix them: an entry is set once, whole.
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

# Keys of one operator: programs see few, and one is about a kilobyte.
MOST = 256
Function = Callable[..., Any]

# run, and of each output the elements, NumPy's dtype, the shape, the dtype; nothing for
# a call that only the general way does.
Ready = tuple[Any, ...]

# Of each argument of an operator, a key of `_KEYS`.
Kinds = tuple[str, ...]
NEVER: Ready = ()
_UNKNOWN = object()

# Stands for the strides of what has no array to be run on.
_NOWHERE = False


class SavedPlans(dict[Any, Ready | None]):
    """What is saved of one operator, by key; None of one that was met once."""

    __slots__ = ("find", "general")

    def __init__(self, find: Callable[..., Ready], general: Function) -> None:
        super().__init__()
        self.find = find
        self.general = general

    def first(self, key: Any, *arguments: Any) -> Any:
        """The general way, for a call that nothing is ready for."""
        known = self.get(key, _UNKNOWN)
        if known is None:
            self[key] = self.find(*arguments)
        elif known is _UNKNOWN:
            self.note(key)
        return self.general(*arguments)

    def note(self, key: Any) -> None:
        """Let a new key be known; the oldest one goes if there are too many."""
        while len(self) >= MOST:
            try:
                del self[next(iter(self))]
            except (KeyError, RuntimeError, StopIteration):
                continue  # another thread was here
        self[key] = None


def saving_plans(
    call: str,
    arguments: str,
    results: int,
    plan: Function,
    own: str | Work,
    general: Function,
) -> Function:
    """An operator's functional form on the CPU, which saves its plans.

    `arguments` are the schema's, `plan` is the operator's, `own` its kernel; `general`
    does any call.
    """
    kinds = kinds_of(arguments)

    def find(*given: Any) -> Ready:
        try:
            return ready_for(plan, own, kinds, given)
        except REFUSALS as error:
            error.operator = call
            raise

    return _saved(kinds, results)(SavedPlans(find, general), call)


# What is decided.


def ready_for(
    plan: Function, own: str | Work, kinds: Kinds, arguments: Sequence[Any]
) -> Ready:
    """What calls like this one run.  Raises what the plan raises."""
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
    parts = [_shown(each, geometry) for each in values]
    run = ready(*(geometry(*each, None) for each in outputs), *parts)
    if run is None:
        return NEVER
    if places != list(range(len(tensors))):
        run = _picker(len(tensors), tuple(places), len(outputs))(run)
    facts = [(prod(each[0]), numpy_dtype(each[1]), *each) for each in outputs]
    return run, *(fact for each in facts for fact in each)


def _computed(plan: CallPlan) -> Sequence[Any] | None:
    """What the kernel gets; None where there is more to do than to run it."""
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
    """A tensor of the same geometry without elements; other values as they are.

    `_UNKNOWN` for what has no geometry here.
    """
    if isinstance(value, list) and value and isinstance(value[0], Tensor):
        hollow = [_hollow(each) for each in value]
        return _UNKNOWN if any(each is _UNKNOWN for each in hollow) else hollow
    if not isinstance(value, Tensor):
        return value
    _, strides = lying(value)
    if strides is _NOWHERE:
        return _UNKNOWN
    made = host_tensor(None, value._shape, value._dtype)
    if strides is not None:
        made._place = Storage(None, CPU, value._dtype, 0), 0, strides
    return made


def lying(tensor: Tensor) -> tuple[Any, Any]:
    """The array from the first element on, and the strides; None of rows in order."""
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
    """Which of the arguments a tensor, or a list of them, is; None: not one of them."""
    for place, each in enumerate(tensors):
        lists = isinstance(value, list) and isinstance(each, list)
        if value is each or (lists and [*map(id, value)] == [*map(id, each)]):
            return place
    return None


def _shown(value: Any, geometry: Function) -> Any:
    """What a kernel is made ready for: a tensor's geometry, any other value itself."""
    if isinstance(value, list):
        return [_shown(each, geometry) for each in value]
    if not isinstance(value, Tensor):
        return value
    place = value._place
    return geometry(value.shape, value.dtype, None if place is None else place[2])


# What is called.

# Schema type -> what stands for the argument in the key.
_KEYS = {
    "Tensor": "_n{at}, {name}._dtype, _s{at}",
    "Tensor?": "_k{at}",
    "Tensor[]": "_k{at}",
    # What equals another number that it is not goes by its text: zeros, NaN, and parts
    # of complex numbers that are zeros.
    "float": "{name} if {name} and {name} == {name} else _repr({name})",
    "Scalar": (
        "_type({name}), {name} if {name} and {name} == {name}"
        " and _type({name}) is not _complex else _repr({name})"
    ),
    "list": "None if {name} is None else _tuple({name})",
    # Converted by the schema: equal ones have one type.
    "": "{name}",
}

TENSORS = ("Tensor", "Tensor?", "Tensor[]")


def kinds_of(arguments: str) -> Kinds:
    """The kind of each argument of a schema, as in the table of keys."""
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
    """The arrays of several tensors, and their geometries, one behind the other.

    Each ends with its dtype; strides stand in front where they were looked up.
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


# What the text of a call names.
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
    """The function for arguments of these kinds."""
    names = [f"_x{at}" for at in range(len(kinds))]
    given = ", ".join(names)
    lines = []
    for at, (kind, name) in enumerate(zip(kinds, names, strict=True)):
        own = [
            f"_a{at}, _n{at}, _s{at} = {name}._flat, {name}._shape, None",
            f"if _a{at} is None or not _n{at}:",
            f"    _a{at}, _s{at} = _lying({name})",
            f"if {name}._device is not _CPU:",
            f"    return _general({given})",
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
    made = range(results)
    facts = "".join(f", _c{at}, _f{at}, _z{at}, _d{at}" for at in made)
    lines += [
        f"_key = {', '.join(keys)},",
        "_ready = _get(_key)",
        "if not _ready:",
        f"    return _first(_key, {given})",
        f"_run{facts} = _ready",
        "try:",
        *(f"    _o{at} = _empty(_c{at}, _f{at})" for at in made),
        f"    _run({', '.join([*arrays, *(f'_o{at}' for at in made)])})",
        "except _MemoryError:",
        f"    return _general({given})",
        "except _REFUSED as _error:",
        "    _error.operator = _call",
        "    raise",
        f"return {', '.join(f'_host(_o{at}, _z{at}, _d{at})' for at in made)}",
    ]
    return [
        "_get, _first, _general = _memory.get, _memory.first, _memory.general",
        *block(f"def saved({given}):", lines),
    ]


@template("saved plans", "run")
def _picker(count: int, places: tuple[int, ...], results: int) -> list[str]:
    """What takes the arrays of a call, and passes those at some places."""
    outputs = [f"o{at}" for at in range(results)]
    given = ", ".join([numbered(count), *outputs] if count else outputs)
    taken = ", ".join([*[f"a{at}" for at in places], *outputs])
    return block(f"def pick({given}):", [f"return run({taken})"])
