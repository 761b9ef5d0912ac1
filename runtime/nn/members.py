"""Members: parameters, and the modules, parameters and buffers within a module.

A parameter is a tensor on the elements of its data, without their history, and requires
a gradient by default; results of operators on it are ordinary tensors.  A member has a
path: the names from the module to the member, joined by dots.

The state of a module is its parameters and persistent buffers by path, including those
of all modules within; a shared tensor is listed at each of its paths.

Rules:
- a module precedes the modules within it; these and the members are in the order of
  their assignment;
- a shared object is listed once, at its first path, unless duplicates are requested;
- the tensors of a returned state share their elements with the module, and do not have
  a history;
- a loaded state is copied into the existing elements or replaces the members; all of it
  is checked first, so that an error changes nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from everyorder.runtime.autograd import no_grad
from everyorder.runtime.errors.future import describe_type
from everyorder.runtime.errors.tensor import NotReplaceable
from everyorder.runtime.tensors import Tensor
from everyorder.runtime.tensors.from_data import tensor as tensor_of


class Parameter(Tensor):
    """A tensor that a module learns: `Parameter(data, requires_grad=True)`.

    `data` is a tensor or any data that `runtime.tensor` accepts; without it the
    parameter is empty.
    """

    def __new__(cls, data: Any = (), requires_grad: bool = True) -> "Parameter":
        """Return a parameter on the elements of `data`."""
        source = data if isinstance(data, Tensor) else tensor_of(data)
        return Tensor._make_subclass(cls, source.detach(), requires_grad)


class MemberTables(Protocol):
    """The tables of a module's members."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]


M = TypeVar("M", bound=MemberTables)

# The names of these tables.
PARAMETERS, BUFFERS, MODULES = "_parameters", "_buffers", "_modules"


def member_path(prefix: str, name: str) -> str:
    """Return the path of a member of the module at `prefix`."""
    return f"{prefix}.{name}" if prefix else name


def modules_within(
    module: M, prefix: str = "", once: bool = True, visited: set[int] | None = None
) -> Iterator[tuple[str, M]]:
    """Yield the module and all within it, with their paths."""
    visited = set() if visited is None else visited
    if once:
        if id(module) in visited:
            return
        visited.add(id(module))
    yield prefix, module
    for name, each in module._modules.items():
        if each is not None:
            yield from modules_within(each, member_path(prefix, name), once, visited)


def members_within(
    module: MemberTables, kind: str, prefix: str, recurse: bool, once: bool
) -> Iterator[tuple[str, Any]]:
    """Yield the parameters, or buffers, with their paths; skip those that are None."""
    visited: set[int] = set()
    everywhere = (
        modules_within(module, prefix, once) if recurse else iter([(prefix, module)])
    )
    for path, each in everywhere:
        for name, value in getattr(each, kind).items():
            if value is None or (once and id(value) in visited):
                continue
            visited.add(id(value))
            yield member_path(path, name), value


class IncompatibleKeys(NamedTuple):
    """The keys without a counterpart in `load_state_dict`."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class _Place(NamedTuple):
    """The location of a tensor of a state: a table and a name."""

    table: dict[str, Any]
    name: str

    @property
    def value(self) -> Tensor:
        return self.table[self.name]  # type: ignore[no-any-return]  # the tables are of tensors


def _places(module: MemberTables) -> dict[str, _Place]:
    places = {}
    for path, each in modules_within(module, once=False):
        persistent = {
            name: value
            for name, value in each._buffers.items()
            if name not in each._non_persistent_buffers_set
        }
        for table, names in (
            (each._parameters, list(each._parameters)),
            (each._buffers, list(persistent)),
        ):
            for name in names:
                if table[name] is not None:
                    places[member_path(path, name)] = _Place(table, name)
    return places


def state_of(
    module: MemberTables, into: dict[str, Any] | None, prefix: str, keep_vars: bool
) -> dict[str, Any]:
    """Return the state, added to `into` if that is a dictionary."""
    state: dict[str, Any] = {} if into is None else into
    for path, place in _places(module).items():
        state[prefix + path] = place.value if keep_vars else place.value.detach()
    return state


def give_state(
    module: MemberTables, state: Mapping[str, Any], strict: bool, assign: bool
) -> IncompatibleKeys:
    """Load a state into a module.  Raises `NotReplaceable`."""
    places = _places(module)
    missing = [path for path in places if path not in state]
    unexpected = [path for path in state if path not in places]
    unfit = [
        fault
        for path, place in places.items()
        if path in state and (fault := _fault(path, state[path], place.value))
    ]
    if unfit or (strict and (missing or unexpected)):
        raise NotReplaceable(
            code="StateMismatch",
            module=type(module).__name__,
            missing=tuple(missing) if strict else (),
            unexpected=tuple(unexpected) if strict else (),
            unfit=tuple(unfit),
        )
    with no_grad():
        for path, place in places.items():
            if path in state:
                _give(place, state[path], assign)
    return IncompatibleKeys(missing, unexpected)


def _fault(path: str, value: Any, there: Tensor) -> str:
    if not isinstance(value, Tensor):
        return f"{path} is {describe_type(value)}, not a tensor"
    if value.shape != there.shape:
        return f"{path} has shape {tuple(value.shape)} instead of {tuple(there.shape)}"
    return ""


def _give(place: _Place, value: Tensor, assign: bool) -> None:
    if not assign:
        place.value.copy_(value)
    elif isinstance(place.value, Parameter) and not isinstance(value, Parameter):
        place.table[place.name] = Parameter(value, place.value.requires_grad)
    else:
        place.table[place.name] = value
