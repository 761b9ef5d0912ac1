"""Containers: lists, dictionaries and chains of modules.

This module defines the lookup of modules by index and by key.

Rules:
- a list names its modules by position, `"0"`, `"1"`, ..., and renames them when a
  module before them is inserted or removed;
- a slice of a list is a list of the same modules;
- only a chain, `Sequential`, computes.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import index as as_index
from typing import Any, Self, overload

from everyorder.runtime.errors.future import describe_type
from everyorder.runtime.errors.script import ModuleError
from everyorder.runtime.nn.module import Module


class _Indexed(Module):
    """Base of lists and chains, which hold modules by position."""

    def _place(self, index: Any) -> int:
        length = len(self._modules)
        try:
            place = as_index(index)
        except TypeError:
            text, fits = describe_type(index), False
        else:
            text, fits = str(place), -length <= place < length
        if not fits:
            raise ModuleError(
                code="UnfitIndex",
                module=type(self).__name__,
                index=text,
                length=length,
            )
        return place % length

    def _name_anew(self, modules: Iterable[Any]) -> None:
        self._modules = {str(place): each for place, each in enumerate(modules)}

    def _of(self, modules: Iterable[Any]) -> Self:
        """Return an instance of the same class with other modules."""
        result = type(self).__new__(type(self))
        Module.__init__(result)
        result._name_anew(modules)
        return result

    def _all(self) -> list[Any]:
        return [*self._modules.values()]

    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(self._all()[index])
        return self._all()[self._place(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        name = [*self._modules][self._place(index)]
        self.register_module(name, module)

    def __delitem__(self, index: int | slice) -> None:
        modules = self._all()
        del modules[index if isinstance(index, slice) else self._place(index)]
        self._name_anew(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for each in [*modules]:
            self.append(each)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Add a module before the one at `index`, as a list does."""
        modules = self._all()
        modules.insert(as_index(index), module)
        # Refuses an object that is not a module, before anything has changed.
        self.register_module(str(len(self)), module)
        self._name_anew(modules)
        return self

    def pop(self, index: int = -1) -> Any:
        """Remove a module and return it."""
        removed = self[index]
        del self[index]
        return removed

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, modules: Iterable[Module]) -> Self:
        return self._of(self._all()).extend(modules)


class ModuleList(_Indexed):
    """A list of modules: `ModuleList([a, b])`."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _texts(self) -> Iterator[tuple[str, str]]:
        # Equal neighbours print once: `(0-2): 3 x Linear()`.
        for text, group in groupby(super()._texts(), lambda pair: pair[1]):
            names = [name for name, _ in group]
            if len(names) == 1:
                yield names[0], text
            else:
                yield f"{names[0]}-{names[-1]}", f"{len(names)} x {text}"


class Sequential(_Indexed):
    """A chain: each module computes the result of the module before it.

    `Sequential(a, b)`, or `Sequential({"first": a, "second": b})` with names.
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, each in modules[0].items():
                self.register_module(name, each)
        else:
            self.extend(modules)

    def forward(self, input: Any) -> Any:  # noqa: A002  # torch's name
        """Return the result of the last module."""
        for module in self:
            input = module(input)  # noqa: A001  # as above
        return input


class ModuleDict(Module):
    """A dictionary of modules by strings."""

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[Any] | None = None
    ) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.register_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        """Return the keys, in the order of insertion."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """Return the modules, in the order of their keys."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the keys with their modules."""
        return self._modules.items()

    def pop(self, key: str) -> Any:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def update(self, modules: Mapping[str, Module] | Iterable[Any]) -> None:
        """Add the modules of a mapping, or of pairs of key and module."""
        pairs = modules.items() if hasattr(modules, "items") else modules
        for each in [*pairs]:
            if not isinstance(each, tuple | list) or len(each) != 2:
                reason = f"{describe_type(each)} is not a pair of a key and a module"
                raise ModuleError(
                    code="UnfitMember",
                    module=type(self).__name__,
                    member="?",
                    reason=reason,
                )
            self[each[0]] = each[1]
