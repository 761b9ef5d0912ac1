"""Members: parameters, and the modules, parameters and buffers within a module.

A parameter is a tensor on the elements that it is made of, without their history, and
requires a gradient unless told otherwise; what operators compute of it is a tensor like
any other.  A member has a path: the names that lead there, joined by dots.

The state of a module is its parameters and persistent buffers by their paths, and those
of all modules within, shared ones at each of their places.

Rules:
- a module comes before the modules within it, these in the order in which they were
  given, and members in the order of theirs;
- what several places share comes once, at the first of them, unless all are wanted;
- a state that is taken shares its elements with the module, and has no history;
- one that is given is copied into the elements that are there, or takes their place;
  nothing is given unless everything fits, which is looked at first.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from everyorder.runtime.autograd import no_grad
from everyorder.runtime.errors.future import describe_type
from everyorder.runtime.errors.tensor import NotReplaceable
from everyorder.runtime.tensors import Tensor
from everyorder.runtime.tensors.from_data import tensor as tensor_of


class Parameter(Tensor):
    """A tensor that a module has for learning: `Parameter(data, requires_grad=True)`.

    `data` is a tensor, or what `runtime.tensor` takes; without it there are no
    elements yet.
    """

    def __new__(cls, data: Any = (), requires_grad: bool = True) -> "Parameter":
        """A parameter on the elements of `data`."""
        found = data if isinstance(data, Tensor) else tensor_of(data)
        return Tensor._make_subclass(cls, found.detach(), requires_grad)


class MemberTables(Protocol):
    """Where the members of a module lie."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]


M = TypeVar("M", bound=MemberTables)

# The tables of them by name.
PARAMETERS, BUFFERS, MODULES = "_parameters", "_buffers", "_modules"


def member_path(prefix: str, name: str) -> str:
    """The path of a member of the module at `prefix`."""
    return f"{prefix}.{name}" if prefix else name


def modules_within(
    module: M, prefix: str = "", once: bool = True, known: set[int] | None = None
) -> Iterator[tuple[str, M]]:
    """The module and all within it, with their paths."""
    known = set() if known is None else known
    if once:
        if id(module) in known:
            return
        known.add(id(module))
    yield prefix, module
    for name, each in module._modules.items():
        if each is not None:
            yield from modules_within(each, member_path(prefix, name), once, known)


def members_within(
    module: MemberTables, kind: str, prefix: str, recurse: bool, once: bool
) -> Iterator[tuple[str, Any]]:
    """The parameters, or buffers, with their paths; those that are None do not come."""
    known: set[int] = set()
    everywhere = (
        modules_within(module, prefix, once) if recurse else iter([(prefix, module)])
    )
    for path, each in everywhere:
        for name, value in getattr(each, kind).items():
            if value is None or (once and id(value) in known):
                continue
            known.add(id(value))
            yield member_path(path, name), value


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` found no counterpart of."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class _Place(NamedTuple):
    """Where a tensor of a state lies."""

    table: dict[str, Any]
    name: str

    @property
    def value(self) -> Tensor:
        return self.table[self.name]  # type: ignore[no-any-return]  # the tables are of tensors


def _places(module: MemberTables) -> dict[str, _Place]:
    found = {}
    for path, each in modules_within(module, once=False):
        kept = {
            name: value
            for name, value in each._buffers.items()
            if name not in each._non_persistent_buffers_set
        }
        for table, names in (
            (each._parameters, list(each._parameters)),
            (each._buffers, list(kept)),
        ):
            for name in names:
                if table[name] is not None:
                    found[member_path(path, name)] = _Place(table, name)
    return found


def state_of(
    module: MemberTables, into: dict[str, Any] | None, prefix: str, keep_vars: bool
) -> dict[str, Any]:
    """The state, put into a dictionary."""
    state: dict[str, Any] = {} if into is None else into
    for path, place in _places(module).items():
        state[prefix + path] = place.value if keep_vars else place.value.detach()
    return state


def give_state(
    module: MemberTables, state: Mapping[str, Any], strict: bool, assign: bool
) -> IncompatibleKeys:
    """Give a module its state.  Raises `NotReplaceable`."""
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
