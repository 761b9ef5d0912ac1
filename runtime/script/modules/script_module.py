"""Compiled functions and modules, as scripts and Python see them.

    Compiled, ScriptMethod    a compiled function, without or with its object
    ScriptModule              a compiled module
    ModuleClass               the class of a module in a program: its static methods

Rules of functions:
- a call binds and converts its arguments by the schema, see `runtime.script.executor`;
- `inlined_graph` is a new graph for each caller; other graphs are shared, and must not
  be changed.

Rules of modules:
- a compiled module is a `runtime.Module`: its parameters, buffers and modules are
  stored as in any module, its other attributes in its `__dict__`; its type declares all
  of them with their types;
- an attribute can be set only to a value of its type, in Python as in a script; both
  see the changes of the other;
- other names may be set from Python, and no script sees them; constants cannot be set;
- methods are those of the type; `ScriptModule` cannot be subclassed;
- a copy has the same type and independent attributes; pickling is refused: use `save`
  and `load`;
- modules are created in Python, before a program is compiled; an interface may derive
  from `Module`, as in torch.
"""

import copy
import inspect
from collections.abc import Iterator, Mapping
from types import MethodType
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
from everyorder.runtime.script.executor.python_interop import test_of
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
    """A compiled function; `function` is its representation in the program."""

    __slots__ = ("__weakref__", "function")

    def __init__(self, function: Function) -> None:
        self.function = function

    @property
    def name(self) -> str:
        """Return the last part of the full name."""
        return self.function.name

    @property
    def qualified_name(self) -> str:
        """Return the full name, `__torch__.package.name`."""
        return self.function.qualname

    @property
    def schema(self) -> Schema:
        """Return the schema: the arguments and the result."""
        return self.function.schema

    @property
    def graph(self) -> Graph:
        """Return the compiled graph, which must not be changed."""
        return self.function.graph

    @property
    def inlined_graph(self) -> Graph:
        """Return a copy of the graph in which all known calls are inlined."""
        inlined = copy_graph(self.graph)
        inline_calls(inlined)
        return inlined

    @property
    def code(self) -> str:
        """Return the function as text, as in an archive."""
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
        """Call the method and return its result."""
        return call(self.function, (self.owner, *args), kwargs)


# The container classes, by the names of their types.
CONTAINERS: Mapping[str, type[Module]] = {
    qualified_name(each): each for each in (ModuleList, Sequential, ModuleDict)
}
# Values of these classes need no conversion to the type.
_COMMON: Mapping[Type, type] = {
    TensorType: Tensor,
    BoolType: bool,
    FloatType: float,
    StrType: str,
}


def converted(value: Any, type_: Type) -> Any:
    """Return a value as one of an attribute's type; `MISMATCH` if it does not fit.

    Lists and dictionaries are copied. An object of a program may be of an interface.
    """
    result = converter(type_)(value)
    if result is not MISMATCH or not test_of(type_)(value):
        return result
    return _copied(value)


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(each) for each in value]
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return value


def is_of_containers(function: Any) -> bool:
    """Return True if a function belongs to the classes of modules themselves."""
    home = getattr(function, "__module__", "") or ""
    return home.startswith("everyorder.runtime.nn.")


def container_of(of: ModuleType) -> type[Module] | None:
    """Return the container class of the modules of a type, or None."""
    python = of.declaration.python
    for each in CONTAINERS.values():
        if python is not None and issubclass(python, each):
            return each
    return CONTAINERS.get(unmangled(of.declaration.qualname))


class ScriptModule(Module):
    """A compiled module, created by `jit.script` and by `jit.load`.

    `values` are its attributes by name, `roles` marks them as "parameter" or "buffer",
    `hooks` are the names of the methods that run before and after a call.
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
        """Return the type, for converters of values."""
        return self.__script_type__

    @property
    def original_name(self) -> str:
        """Return the name of the class that was compiled."""
        return unmangled(self.__script_type__.declaration.qualname).rpartition(".")[2]

    # Calls.

    @property
    def forward(self) -> Any:
        """Return the method `forward`; raises `ModuleError` if there is none."""
        return self.__getattr__("forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of `__call__`, or of `forward` through the hooks."""
        if "__call__" in self.__script_type__.declaration.methods:
            return self._method("__call__")(*args, **kwargs)
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
        """Return the graph of `forward`."""
        graph: Graph = self.forward.graph
        return graph

    @property
    def inlined_graph(self) -> Graph:
        """Return the graph of `forward` in which all known calls are inlined."""
        graph: Graph = self.forward.inlined_graph
        return graph

    @property
    def code(self) -> str:
        """Return `forward` as text, as in an archive."""
        text: str = self.forward.code
        return text

    def save(self, f: Any, **options: Any) -> None:
        """Write an archive, as `jit.save` does."""
        SAVE.get()(self, f, **options)

    def define(self, src: str) -> None:
        """Add the methods of a text to all modules of this type."""
        DEFINE_METHODS.get()(self, src)

    # Attributes.

    def __setattr__(self, name: str, value: Any) -> None:
        declaration = self.__script_type__.declaration
        declared = declaration.attributes.get(name)
        if declared is None:
            self._set_other(name, value)
            return
        if value.__class__ is not _COMMON.get(declared):
            result = converted(value, declared)
            if result is MISMATCH:
                reason = f"it is of type {declared}, not {describe_type(value)}"
                raise ModuleError(
                    code="UnfitMember",
                    module=self.original_name,
                    member=name,
                    reason=reason,
                )
            value = result
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

    # Behaviour as a Python container.

    def _kind(self, feature: str) -> type[Module]:
        kind = container_of(self.__script_type__)
        if kind is None:
            # The error of a Python object without this method.
            raise TypeError(f"a compiled `{self.original_name}` has no {feature}")
        return kind

    def _own_method(self, name: str) -> Any:
        """Return a special method of the class: compiled, or Python's; or None."""
        declaration = self.__script_type__.declaration
        if name in declaration.methods:
            return self._method(name)
        python: Any = declaration.python
        member = inspect.getattr_static(python, name, None)
        if not inspect.isfunction(member) or is_of_containers(member):
            return None
        return MethodType(member, self)

    def __bool__(self) -> bool:
        own = self._own_method("__bool__")
        return True if own is None else bool(own())

    def __len__(self) -> int:
        own = self._own_method("__len__")
        if own is not None:
            length: int = own()
            return length
        self._kind("len()")
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        own = self._own_method("__iter__")
        if own is not None:
            return iter(own())
        is_dict = self._kind("elements to iterate over") is ModuleDict
        return iter([*(self._modules if is_dict else self._modules.values())])

    def __contains__(self, each: object) -> bool:
        own = self._own_method("__contains__")
        if own is not None:
            return bool(own(each))
        return any(each is one or each == one for one in self)

    def __getitem__(self, index: Any) -> Any:
        own = self._own_method("__getitem__")
        if own is not None:
            return own(index)
        if self._kind("elements") is ModuleDict:
            return self._modules[index]
        return [*self._modules.values()][index]

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(vars(self))
        for name in ("_parameters", "_buffers", "_modules"):
            copied.__dict__[name] = {**vars(self)[name]}
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        for name, each in vars(self).items():
            copied.__dict__[name] = copy.deepcopy(each, memo)
        return copied

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to pickle the module.

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
        """Return the name of the class that was compiled."""
        return f"original_name={self.original_name}"


# Attributes of every compiled module in Python, which are not available to programs.
RESERVED = frozenset(dir(ScriptModule)) - frozenset(dir(Module))


class ModuleClass(PythonObject):
    """A class of modules: programs can call its static methods."""

    __slots__ = ()

    def describe(self) -> str:
        return f"the class `{self.python.__name__}` of modules"

    def attribute(self, e: Emitter, name: str) -> Sugared:
        member = inspect.getattr_static(self.python, name, None)
        if isinstance(member, staticmethod):
            return sugar_of(member.__func__, e)
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
