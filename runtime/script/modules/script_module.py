"""Compiled functions and modules: what scripts and Python both see of them.

    Compiled, ScriptMethod    a compiled function, with or without an object to it
    ScriptModule              a compiled module
    ModuleClass               the class of a module in a program: its static methods

Rules of functions:
- a call binds and converts its arguments by the schema, as `runtime.script.executor`
  says;
- `inlined_graph` is made anew for each caller; other graphs are shared, and must not be
  changed.

Rules of modules:
- a compiled module is a `runtime.Module`: its parameters, buffers and modules lie where
  those of modules do, its other attributes in its `__dict__`; its type says which there
  are, and of what types;
- an attribute of the type is set to a value of its type, in Python as in a
  script; what is set in a script, Python sees, and the other way round;
- other names may be set from Python, and no script sees them; constants stay;
- methods are those of the type; a class of its own cannot derive from it;
- a copy has the same type, and attributes of its own; what is pickled is refused:
  `save` and `load` are for that;
- modules are made by Python, before a program is compiled; an interface may derive from
  `Module`, as those of torch do.
"""

import copy
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, Self, SupportsIndex

from everyorder.runtime.base.hooks import CODE_OF, DEFINE_METHODS, SAVE
from everyorder.runtime.errors.future import describe_type
from everyorder.runtime.errors.script import ModuleError, NotScriptable
from everyorder.runtime.nn import Module, Parameter
from everyorder.runtime.nn.containers import ModuleDict, ModuleList, Sequential
from everyorder.runtime.schema.declared import ModuleType, qualified_name, unmangled
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.types import (
    BoolType,
    FloatType,
    StrType,
    TensorType,
    Type,
)
from everyorder.runtime.schema.values import MISMATCH, converter
from everyorder.runtime.script.emission import (
    CLASSES,
    Arguments,
    Emitter,
    Sugared,
    no_attribute,
    sugar_of,
)
from everyorder.runtime.script.emission.emitter import PythonObject
from everyorder.runtime.script.emission.python_class import getter, setter
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir import Graph, copy_graph
from everyorder.runtime.script.ir.program import (
    INTERFACE_BASES,
    TYPE_ATTRIBUTE,
    Function,
    Mark,
    is_interface,
    mark_of,
)
from everyorder.runtime.script.passes import inline_calls
from everyorder.runtime.tensors import Tensor


class Compiled:
    """A compiled function; `function` is what a program has of it."""

    __slots__ = ("__weakref__", "function")

    def __init__(self, function: Function) -> None:
        self.function = function

    @property
    def name(self) -> str:
        """The last part of the full name."""
        return self.function.name

    @property
    def qualified_name(self) -> str:
        """The full name, `__torch__.package.name`."""
        return self.function.qualname

    @property
    def schema(self) -> Schema:
        """The arguments and the result."""
        return self.function.schema

    @property
    def graph(self) -> Graph:
        """The compiled graph; not to be changed."""
        return self.function.graph

    @property
    def inlined_graph(self) -> Graph:
        """A copy of the graph, with the graphs of all that it calls in it."""
        made = copy_graph(self.graph)
        inline_calls(made)
        return made

    @property
    def code(self) -> str:
        """The function as text, as it stands in an archive."""
        return CODE_OF.get()(self.function)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.qualified_name})"


class ScriptMethod(Compiled):
    """A compiled method with its object, `owner`."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any, function: Function) -> None:
        super().__init__(function)
        self.owner = owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the method."""
        return call(self.function, (self.owner, *args), kwargs)


# The classes that are containers, by the names of their types.
CONTAINERS: Mapping[str, type[Module]] = {
    qualified_name(each): each for each in (ModuleList, Sequential, ModuleDict)
}
# Values of these classes are of the type as they are.
_COMMON: Mapping[Type, type] = {
    TensorType: Tensor,
    BoolType: bool,
    FloatType: float,
    StrType: str,
}


def container_of(of: ModuleType) -> type[Module] | None:
    """The class of containers that modules of a type are of, or None."""
    python = of.declaration.python
    for each in CONTAINERS.values():
        if python is not None and issubclass(python, each):
            return each
    return CONTAINERS.get(unmangled(of.declaration.qualname))


class ScriptModule(Module):
    """A compiled module; made by `jit.script` and by `jit.load`.

    `values` are its attributes by name, `roles` says which of them are a "parameter" or
    a "buffer", `hooks` are the names of the methods that run before and behind a call.
    """

    __script_type__: ModuleType
    _script_hooks: tuple[tuple[str, ...], tuple[str, ...]]

    def __init__(
        self,
        of: ModuleType,
        values: Mapping[str, Any],
        roles: Mapping[str, str] | None = None,
        hooks: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    ) -> None:
        if not isinstance(of, ModuleType):
            raise NotScriptable(
                found=f"a ScriptModule of {describe_type(of)}",
                reason="compiled modules are made by `jit.script` and by `jit.load`",
            )
        super().__init__()
        self.__dict__[TYPE_ATTRIBUTE] = of
        self.__dict__["_script_hooks"] = hooks
        roles = {} if roles is None else roles
        for name in of.declaration.attributes:
            if name not in values:
                continue
            value, role = values[name], roles.get(name)
            if role == "parameter":
                self._parameters[name] = value
            elif role == "buffer":
                self._buffers[name] = value
            elif isinstance(value, Module):
                self._modules[name] = value
            else:
                self.__dict__[name] = value

    def __init_subclass__(cls, **options: Any) -> None:
        raise NotScriptable(
            found=f"the class `{cls.__name__}`, which derives from ScriptModule",
            reason="its methods would be compiled before there is an object",
            hint="Derive from `runtime.Module`, and call `jit.script` with an object.",
        )

    @property
    def schema_type(self) -> ModuleType:
        """The type; converters of values ask for it."""
        return self.__script_type__

    @property
    def original_name(self) -> str:
        """The name of the class that was compiled."""
        return unmangled(self.__script_type__.declaration.qualname).rpartition(".")[2]

    # What it computes.

    @property
    def forward(self) -> Any:
        """The method of this name; raises `ModuleError` if there is none."""
        return self.__getattr__("forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of `forward`, through the hooks that were compiled."""
        before, behind = self._script_hooks
        if not before and not behind:
            return super().__call__(*args, **kwargs)
        if kwargs:
            names = [each.name for each in self.forward.schema.arguments[1:]]
            late = names[len(args) :]
            args += tuple(kwargs.pop(each) for each in late if each in kwargs)
        for name in before:
            changed = self._method(name)(args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = super().__call__(*args, **kwargs)
        for name in behind:
            changed = self._method(name)(args, result)
            if changed is not None:
                result = changed
        return result

    def _method(self, name: str) -> ScriptMethod:
        return ScriptMethod(self, self.__script_type__.declaration.functions[name])

    @property
    def graph(self) -> Graph:
        """The graph of `forward`."""
        found: Graph = self.forward.graph
        return found

    @property
    def inlined_graph(self) -> Graph:
        """The graph of `forward`, with all that it calls."""
        found: Graph = self.forward.inlined_graph
        return found

    @property
    def code(self) -> str:
        """`forward` as text, as it stands in an archive."""
        found: str = self.forward.code
        return found

    def save(self, f: Any, **options: Any) -> None:
        """Write an archive, as `jit.save` does."""
        SAVE.get()(self, f, **options)

    def define(self, src: str) -> None:
        """Add methods, of a text, to all modules of this type."""
        DEFINE_METHODS.get()(self, src)

    # Its attributes.

    def __setattr__(self, name: str, value: Any) -> None:
        declaration = self.__script_type__.declaration
        wanted = declaration.attributes.get(name)
        if wanted is None:
            self._set_other(name, value)
            return
        if value.__class__ is not _COMMON.get(wanted):
            converted = converter(wanted)(value)
            if converted is MISMATCH:
                reason = f"it is of type {wanted}, not {describe_type(value)}"
                raise ModuleError(
                    code="UnfitMember",
                    module=self.original_name,
                    member=name,
                    reason=reason,
                )
            value = converted
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                table[name] = value
                return
        self.__dict__[name] = value

    def _set_other(self, name: str, value: Any) -> None:
        declaration, reason = self.__script_type__.declaration, None
        accessor = declaration.functions.get(setter(name))
        if accessor is not None:
            ScriptMethod(self, accessor)(value)
            return
        if name in declaration.constants:
            reason = "there is a constant of this name"
        elif name in declaration.methods:
            reason = "there is a method of this name"
        elif isinstance(value, Module | Parameter):
            reason = "the module is compiled, and gets no more members"
        if reason is not None:
            raise ModuleError(
                code="UnfitMember",
                module=self.original_name,
                member=name,
                reason=reason,
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__script_type__.declaration.attributes:
            reason = "scripts use it, and it cannot be deleted"
            raise ModuleError(
                code="UnfitMember",
                module=self.original_name,
                member=name,
                reason=reason,
            )
        object.__delattr__(self, name)

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            table = self.__dict__.get(kind)
            if table is not None and name in table:
                return table[name]
        of = self.__dict__.get(TYPE_ATTRIBUTE)
        if of is not None:
            declaration = of.declaration
            function = declaration.functions.get(name)
            if function is not None and name in declaration.methods:
                return ScriptMethod(self, function)
            if name in declaration.constants:
                return declaration.constants[name]
            accessor = declaration.functions.get(getter(name))
            if accessor is not None:
                return ScriptMethod(self, accessor)()
            if name in ("keys", "values", "items") and container_of(of) is ModuleDict:
                return getattr(self._modules, name)
            python = declaration.python
            plain: Any = getattr(python, name, None)
            if mark_of(plain) in (Mark.IGNORE, Mark.UNUSED):
                return plain.__get__(self, python)
        return super().__getattr__(name)

    def _names(self) -> list[str]:
        of = self.__dict__[TYPE_ATTRIBUTE].declaration
        return [*super()._names(), *of.methods, *of.constants]

    # What it is in Python.

    def _kind(self, asked: str) -> type[Module]:
        kind = container_of(self.__script_type__)
        if kind is None:
            # What Python says of an object that has no such method.
            raise TypeError(f"a compiled `{self.original_name}` has no {asked}")
        return kind

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        self._kind("len()")
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        is_dict = self._kind("elements to iterate over") is ModuleDict
        return iter([*(self._modules if is_dict else self._modules.values())])

    def __contains__(self, each: object) -> bool:
        return any(each is one or each == one for one in self)

    def __getitem__(self, index: Any) -> Any:
        if self._kind("elements") is ModuleDict:
            return self._modules[index]
        return [*self._modules.values()][index]

    def __copy__(self) -> Self:
        made = type(self).__new__(type(self))
        made.__dict__.update(vars(self))
        for name in ("_parameters", "_buffers", "_modules"):
            made.__dict__[name] = {**vars(self)[name]}
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, each in vars(self).items():
            made.__dict__[name] = copy.deepcopy(each, memo)
        return made

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            NotScriptable: always.
        """
        raise NotScriptable(
            found=f"the compiled module `{self.original_name}`",
            reason="a compiled module is not pickled",
            hint="Use `jit.save` and `jit.load`.",
        )

    def _get_name(self) -> str:
        return "ScriptModule"

    def extra_repr(self) -> str:
        """The name of the class that was compiled."""
        return f"original_name={self.original_name}"


# Names that Python sees of every compiled module, and no attribute can have.
RESERVED = frozenset(dir(ScriptModule)) - frozenset(dir(Module))


class ModuleClass(PythonObject):
    """A class of modules, of which programs call the static methods."""

    __slots__ = ()

    def describe(self) -> str:
        return f"the class `{self.python.__name__}` of modules"

    def attribute(self, e: Emitter, name: str) -> Sugared:
        found = inspect.getattr_static(self.python, name, None)
        if isinstance(found, staticmethod):
            return sugar_of(found.__func__, e)
        hint = "Of a class of modules, programs have its static methods."
        return no_attribute(e, self.describe(), name, (), hint)

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        e.fail(
            f"{self.describe()} is called", "Make the module outside of the program."
        )


def _class(python: type) -> Sugared | None:
    is_own = python.__module__.startswith("everyorder.runtime.nn")
    if not issubclass(python, Module) or is_own or is_interface(python):
        return None
    return ModuleClass(python)


INTERFACE_BASES.register(Module, None)
CLASSES.register("modules", _class)
