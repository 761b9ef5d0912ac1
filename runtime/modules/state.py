"""State: the parameters and buffers of a module by their paths, taken and given.

True only here: what belongs to a state, and when one fits.

Rules:
- parameters and persistent buffers of all modules within belong to it, shared ones at
  each of their places;
- what is taken shares its elements with the module, and has no history;
- what is given is copied into the elements that are there, or takes their place;
- nothing is given unless everything fits, which is looked at first.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.autograd import no_grad
from runtime.errors.future import described
from runtime.errors.program import StateMismatch
from runtime.modules.parameter import Parameter
from runtime.modules.walking import joined, modules_within
from runtime.tensors import Tensor

if TYPE_CHECKING:
    from runtime.modules.module import Module


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


def _places(module: "Module") -> dict[str, _Place]:
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
                    found[joined(path, name)] = _Place(table, name)
    return found


def state_of(
    module: "Module", into: dict[str, Any] | None, prefix: str, keep_vars: bool
) -> dict[str, Any]:
    """The state, put into a dictionary."""
    state: dict[str, Any] = {} if into is None else into
    for path, place in _places(module).items():
        state[prefix + path] = place.value if keep_vars else place.value.detach()
    return state


def give_state(
    module: "Module", state: Mapping[str, Any], strict: bool, assign: bool
) -> IncompatibleKeys:
    """Give a module its state.  Raises `StateMismatch`."""
    places = _places(module)
    missing = [path for path in places if path not in state]
    unexpected = [path for path in state if path not in places]
    unfit = [
        fault
        for path, place in places.items()
        if path in state and (fault := _fault(path, state[path], place.value))
    ]
    if unfit or (strict and (missing or unexpected)):
        raise StateMismatch(
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
        return f"{path} is {described(value)}, not a tensor"
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
