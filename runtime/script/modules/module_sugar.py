"""Modules in programs: their attributes, methods, and submodules.

    self.w, self.layers, self.limit    attributes, modules, constants
    self.helper(x)                     methods: compiled when a program first calls them
    super().forward(x)                 methods of the classes above
    self.layer(x)                      `forward`, through the hooks of the module
    self.layers[1], [-2], [1:]         by literals: the module is known statically
    layer: Layer = self.layers[n]      any module that has the interface
    for layer in self.layers           unrolled, also with enumerate and zip
    self.table["a"], .items(), in      the same for dictionaries of modules
    self.named_parameters(), ...       unrolled, in the order of Python

Rules:
- the type of a module declares its attributes; all else is in its shape;
- a member that is a failure is refused here, with the reason;
- programs cannot call the methods of the class Module, except those that list
  submodules and tensors.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from everyorder.runtime.nn import Module, ModuleDict, Sequential
from everyorder.runtime.nn.members import member_path
from everyorder.runtime.schema.declared import InterfaceType, ModuleType
from everyorder.runtime.schema.types import (
    DictType,
    ListType,
    NoneType_,
    StrType,
    TensorType,
)
from everyorder.runtime.script.emission import (
    Arguments,
    Emitter,
    SimpleValue,
    Sugared,
    SugaredTuple,
    constant_of,
    no_attribute,
    part_of,
    register_special_form,
    register_sugar,
    register_value,
    sugar_of,
    sugar_of_value,
)
from everyorder.runtime.script.emission.call_matching import (
    call_method,
    fail_recursive,
)
from everyorder.runtime.script.emission.function_values import (
    IGNORED,
    IgnoredFunction,
)
from everyorder.runtime.script.emission.objects import attribute_of
from everyorder.runtime.script.emission.sugar import UnknownObject
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.ir.program import mark_of
from everyorder.runtime.script.modules.build import (
    begin_method,
    hook_methods,
    method_of,
    property_method,
)
from everyorder.runtime.script.modules.module_shape import ModuleShape, shape_of
from everyorder.runtime.script.modules.script_module import (
    container_of,
    is_of_containers,
)

_CALL = "Call the modules that are in it."
_NO_CLASS = "Make it a static method, or a function."
_ANNOTATE = (
    "Annotate it in the class and give it a value of that type, or do not use it."
)
_CONTAINERS = "Lists, chains and dictionaries of modules have elements."
_LITERALS = (
    "Which module it is, is known before the program runs: write a literal, go "
    "through them, as in `for i, layer in enumerate(self.layers)`, or say by an "
    "interface what all of them are, as in `layer: Layer = self.layers[i]`."
)


def attribute_value(e: Emitter, owner: Value, name: str) -> Sugared:
    """Return an attribute of a module."""
    return sugar_of_value(attribute_of(e, owner, name))


class ModuleValue(SimpleValue):
    """A module as a value of a program."""

    __slots__ = ()

    @property
    def module_type(self) -> ModuleType:
        """Return the type of the module."""
        type_ = self.type
        assert isinstance(type_, ModuleType), "a ModuleValue wraps a module only"
        return type_

    @property
    def shape(self) -> ModuleShape | None:
        """Return the shape of the module; None if it was loaded from an archive."""
        return shape_of(self.module_type)

    @property
    def path(self) -> str:
        """Return the path of the module in the program."""
        value, names = self.node_value, []
        while value.node.kind == "prim::GetAttr":
            names.append(value.node.attributes["name"])
            value = value.node.inputs[0]
        return ".".join([value.hint or "module", *reversed(names)])

    def describe(self) -> str:
        name = str(self.type).rpartition(".")[2]
        return f"the module `{self.path}` of class {name}"

    def words(self) -> str:
        return str(self.type)

    # Attributes.

    def attribute(self, e: Emitter, name: str) -> Sugared:
        declaration, shape = self.module_type.declaration, self.shape
        if name in declaration.attributes:
            return attribute_value(e, self.node_value, name)
        if name in declaration.constants:
            return _constant(e, declaration.constants[name])
        if name in declaration.methods:
            return MethodValue(self, name)
        make = self._member_list(name)
        if make is not None:
            return make
        if shape is None:
            self._lacks(e, name)
        if name in shape.failures:
            message = f"`{name}` of {self.describe()} is not for programs"
            e.fail(f"{message}: {shape.failures[name]}", _ANNOTATE)
        if name in shape.functions:
            return sugar_of(shape.functions[name], e)
        return self._of_class(e, shape, name)

    def _of_class(self, e: Emitter, shape: ModuleShape, name: str) -> Sugared:
        member: Any = shape.member(name)
        if isinstance(member, property):
            if name in getattr(shape.python, "__jit_unused_properties__", ()):
                e.fail(
                    f"the property `{name}` of {self.describe()} is not for programs"
                )
            method = property_method(shape, name, "get", e)
            return MethodValue(self, method).call(e, Arguments())
        if isinstance(member, staticmethod):
            return sugar_of(member.__func__, e)
        if member is vars(Module)["forward"]:
            hint = "Define it in the class." if self.container is None else _CALL
            e.fail(f"{self.describe()} has no `forward`", hint)
        if _is_of_python(member):
            e.fail(f"`{name}` of {self.describe()} is for Python only")
        if inspect.isfunction(member):
            if mark_of(member) in IGNORED:
                return IgnoredFunction(member, self)
            return MethodValue(self, name)
        if isinstance(member, classmethod):
            message = f"`{name}` of {self.describe()} is a class method"
            e.fail(f"{message}, and classes are no values in scripts", _NO_CLASS)
        if member is None:
            self._lacks(e, name)
        message = (
            f"`{name}` belongs to the class of {self.describe()}, not to the module"
        )
        hint = f"Annotate it as `{name}: Final`, to have it as a constant."
        return e.fail(message, hint)

    def _lacks(self, e: Emitter, name: str) -> NoReturn:
        declaration, shape = self.module_type.declaration, self.shape
        candidates = [
            *declaration.attributes,
            *declaration.methods,
            *declaration.constants,
        ]
        if shape is not None:
            own = (each for each in dir(shape.python) if each not in vars(Module))
            candidates += [*shape.functions, *own]
        no_attribute(e, self.describe(), name, candidates)

    def set_attribute(self, e: Emitter, name: str, value: Sugared) -> None:
        """Set an attribute, or a property; modules and constants cannot be set."""
        declaration, shape = self.module_type.declaration, self.shape
        of = declaration.attributes.get(name)
        if isinstance(of, ModuleType):
            hint = "An attribute whose type is an interface can be."
            e.fail(f"the module `{name}` of {self.describe()} cannot be set", hint)
        if of is None and name in declaration.constants:
            e.fail(f"the constant `{name}` of {self.describe()} cannot be set")
        if of is None and shape is not None:
            if name in shape.failures:
                self.attribute(e, name)
            member = inspect.getattr_static(shape.python, name, None)
            if isinstance(member, property):
                method = property_method(shape, name, "set", e)
                MethodValue(self, method).call(e, Arguments((value,)))
                return
            hint = "What programs set, is there before: set it in `__init__`."
            no_attribute(e, self.describe(), name, [*declaration.attributes], hint)
        if of is None:
            no_attribute(e, self.describe(), name, [*declaration.attributes])
        message = f"`{name}` of {self.describe()} is of type {of}, and is set to {{}}"
        fitted = e.fit(value.value(e), of, message)
        e.node("prim::SetAttr", (self.node_value, fitted), (), {"name": name})

    # Calls.

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Return the result of `__call__`, or of `forward` through the hooks."""
        shape = self.shape
        is_itself = "__call__" in self.module_type.declaration.methods
        if is_itself or (shape is not None and shape.is_called_itself):
            return MethodValue(self, "__call__").call(e, arguments)
        return self.call_forward(e, arguments)

    def call_forward(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Return the result of `forward`, with the hooks applied."""
        shape = self.shape
        before, behind = ((), ()) if shape is None else hook_methods(shape, e.compiler)
        if not before and not behind:
            return self._forward(e, arguments)
        if arguments.named:
            hint = "Pass everything by place."
            e.fail(f"{self.describe()} has hooks, and is called by name", hint)
        items = arguments.positional
        for name in before:
            packed = Arguments((SugaredTuple(items),))
            changed = MethodValue(self, name).call(e, packed)
            if isinstance(changed, SimpleValue) and changed.type is NoneType_:
                continue
            elements = changed.elements(e)
            items = (changed,) if elements is None else elements
        result = self._forward(e, Arguments(items))
        for name in behind:
            packed = Arguments((SugaredTuple(items), result))
            changed = MethodValue(self, name).call(e, packed)
            if not isinstance(changed, SimpleValue) or changed.type is not NoneType_:
                result = changed
        return result

    def _forward(self, e: Emitter, arguments: Arguments) -> Sugared:
        return self.attribute(e, "forward").call(e, arguments)

    # Submodules.

    @property
    def container(self) -> type[Module] | None:
        """Return the container class of the module, or None."""
        return container_of(self.module_type)

    def _names(self) -> list[str]:
        attributes = self.module_type.declaration.attributes
        return [
            name
            for name, of in attributes.items()
            if isinstance(of, ModuleType | InterfaceType)
        ]

    def _modules(self, e: Emitter) -> list[Sugared]:
        return [attribute_value(e, self.node_value, name) for name in self._names()]

    def own_method(self, name: str) -> Sugared | None:
        """Return a special method that the class defines itself, or None."""
        shape = self.shape
        if name in self.module_type.declaration.methods:
            return MethodValue(self, name)
        member = None if shape is None else shape.member(name)
        if not inspect.isfunction(member) or _is_of_python(member):
            return None
        return MethodValue(self, name)

    def elements(self, e: Emitter) -> Sequence[Sugared] | None:
        if self.container is None or self.own_method("__iter__") is not None:
            return None
        if self.container is ModuleDict:
            return [SimpleValue(e.constant(name)) for name in self._names()]
        return self._modules(e)

    def iterate(self, e: Emitter) -> Any:
        elements = self.elements(e)
        if elements is None:
            e.fail(f"{self.describe()} is not iterable", _CONTAINERS)
        return SugaredTuple(elements).iterate(e)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        own = self.own_method("__getitem__")
        if own is not None:
            return own.call(e, Arguments((index,)))
        if self.container is None:
            e.fail(f"{self.describe()} has no elements", _CONTAINERS)
        names = self._names()
        if self.container is ModuleDict:
            is_constant, key = constant_of(index)
            if not is_constant or not isinstance(key, str):
                e.fail(f"the key of {self.describe()} is not a literal", _LITERALS)
            if key not in names:
                choices = ", ".join(map(repr, names)) or "none"
                e.fail(f"{self.describe()} has no module {key!r}", f"It has {choices}.")
            return attribute_value(e, self.node_value, key)
        is_constant, place = constant_of(index)
        if is_constant and isinstance(place, int) and not isinstance(place, bool):
            if not -len(names) <= place < len(names):
                count = f"{len(names)} module{'s' * (len(names) != 1)}"
                e.fail(f"{self.describe()} has {count}, and none at {place}")
            return attribute_value(e, self.node_value, names[place])
        part = part_of(e, self._modules(e), index)
        if not isinstance(part, list):
            e.fail(f"the index of {self.describe()} is not a literal", _LITERALS)
        return SugaredTuple(part)

    def select(self, e: Emitter, index: Sugared, interface: Any) -> Sugared:
        """Return one of the modules by index; all of them must fit the interface."""
        is_constant, _ = constant_of(index)
        if is_constant or self.container is None:
            return self.subscript(e, index)
        message = f"a module of type {{}} in {self.describe()} is none of {interface}"
        inputs = [e.fit(each.value(e), interface, message) for each in self._modules(e)]
        kind, of = "prim::ListConstruct", ListType(interface)
        if self.container is ModuleDict:
            kind, of = "prim::DictConstruct", DictType(StrType, interface)  # type: ignore[assignment]  # either is a type
            keys = map(e.constant, self._names())
            inputs = [part for pair in zip(keys, inputs, strict=True) for part in pair]
        container = e.node(kind, inputs, (of,))
        return sugar_of_value(container.output).subscript(e, index)

    def set_subscript(self, e: Emitter, index: Sugared, value: Sugared) -> None:
        e.fail(f"the modules of {self.describe()} stay as they are")

    def enter(self, e: Emitter) -> Value:
        e.fail(f"{self.describe()} cannot be used in `with`")

    def delete_subscript(self, e: Emitter, index: Sugared) -> None:
        self.set_subscript(e, index, index)

    def binary(
        self, e: Emitter, symbol: str, other: Sugared, reflected: bool
    ) -> Sugared | None:
        if symbol != "in" or not reflected:
            return None
        own = self.own_method("__contains__")
        if own is not None:
            return own.call(e, Arguments((other,)))
        if self.container is not ModuleDict:
            e.fail(f"`in` does not look into {self.describe()}")
        is_constant, key = constant_of(other)
        if not is_constant:
            e.fail(f"the key of {self.describe()} is not a literal", _LITERALS)
        return SimpleValue(e.constant(key in self._names()))

    def truth(self, e: Emitter) -> Value | bool:
        """Return the truth: of `__bool__`, or of `__len__`; else of the container."""
        for name in ("__bool__", "__len__"):
            own = self.own_method(name)
            if own is not None:
                return own.call(e, Arguments()).truth(e)
        return self.container is None or bool(self._names())

    def _member_list(self, name: str) -> Sugared | None:
        lists = _DICTIONARY if self.container is ModuleDict else {}
        make = lists.get(name) or _WITHIN.get(name)
        shape = self.shape
        own = None if shape is None else shape.member(name)
        if make is None or (shape is not None and own is not _OWN.get(name)):
            return None
        return MemberList(self, name, make)


def _is_of_python(function: Any) -> bool:
    """Return True if a function belongs to the classes of modules themselves."""
    is_chain = function is vars(Sequential)["forward"]
    return is_of_containers(function) and not is_chain


def _constant(e: Emitter, value: Any) -> Sugared:
    """Return a constant of a module; a list becomes a tuple, as it cannot change."""
    if isinstance(value, list | tuple):
        return SugaredTuple([_constant(e, each) for each in value])
    return sugar_of(value, e)


class MethodValue(Sugared):
    """A method of a module."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: ModuleValue, name: str) -> None:
        self.owner = owner
        self.name = name

    @property
    def python(self) -> Any:
        """Return the function of the class."""
        shape = self.owner.shape
        assert shape is not None, "a loaded module has all of its methods"
        return shape.member(self.name)

    def describe(self) -> str:
        return f"the method `{self.owner.path}.{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        owner = self.owner
        methods = owner.module_type.declaration.methods
        if owner.shape is not None and self.name not in methods:
            path = f"{owner.path}.{self.name}"
            if e.compiler.is_active((self.python, owner.module_type)):
                fail_recursive(e, self.describe(), "self, ...")
            method_of(owner.shape, self.name, e.compiler, e.since(path))
        callee = f"`{owner.path}.{self.name}`"
        return call_method(e, callee, methods[self.name], owner, self.name, arguments)


class MemberList(Sugared):
    """A method that lists members of a module: its result is known statically."""

    __slots__ = ("make", "name", "owner")

    def __init__(
        self,
        owner: ModuleValue,
        name: str,
        make: Callable[[Emitter, ModuleValue], Sequence[Sugared]],
    ) -> None:
        self.owner = owner
        self.name = name
        self.make = make

    def describe(self) -> str:
        return f"the method `{self.owner.path}.{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        if arguments.positional or arguments.named:
            e.fail(f"{self.describe()} takes no arguments in a program")
        return SugaredTuple(self.make(e, self.owner))


def _pair(e: Emitter, name: str, value: Sugared) -> Sugared:
    return SugaredTuple((SimpleValue(e.constant(name)), value))


def _children(e: Emitter, owner: ModuleValue) -> list[tuple[str, Sugared]]:
    return [
        (name, attribute_value(e, owner.node_value, name)) for name in owner._names()
    ]


def _within(
    e: Emitter, owner: ModuleValue, prefix: str = ""
) -> list[tuple[str, ModuleValue]]:
    modules = [(prefix, owner)]
    for name, each in _children(e, owner):
        if isinstance(each, ModuleValue):
            modules += _within(e, each, member_path(prefix, name))
    return modules


def _tensors(role: str) -> Callable[[Emitter, ModuleValue], list[tuple[str, Sugared]]]:
    def make(e: Emitter, owner: ModuleValue) -> list[tuple[str, Sugared]]:
        pairs = []
        for path, each in _within(e, owner):
            roles: Any = {} if each.shape is None else each.shape.roles
            attributes: Any = each.module_type.declaration.attributes
            for name, own in roles.items():
                if own == role and attributes[name] is TensorType:
                    pairs.append(
                        (
                            member_path(path, name),
                            attribute_value(e, each.node_value, name),
                        )
                    )
        return pairs

    return make


def _pairs(make: Any) -> Any:
    return lambda e, owner: [_pair(e, *each) for each in make(e, owner)]


def _values(make: Any) -> Any:
    return lambda e, owner: [each for _, each in make(e, owner)]


_WITHIN: dict[str, Any] = {
    "named_children": _pairs(_children),
    "children": _values(_children),
    "named_modules": _pairs(_within),
    "modules": _values(_within),
    "named_parameters": _pairs(_tensors("parameter")),
    "parameters": _values(_tensors("parameter")),
    "named_buffers": _pairs(_tensors("buffer")),
    "buffers": _values(_tensors("buffer")),
}
_DICTIONARY: dict[str, Any] = {
    "items": _pairs(_children),
    "values": _values(_children),
    "keys": lambda e, owner: [SimpleValue(e.constant(n)) for n in owner._names()],
}
# Methods of the base classes: a class may override them.
_OWN = {
    **{name: vars(Module)[name] for name in _WITHIN},
    **{name: vars(ModuleDict)[name] for name in _DICTIONARY},
}


class Super(Sugared):
    """`super()`: the methods of the base classes of the method's class."""

    __slots__ = ()

    def describe(self) -> str:
        return "`super`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        first = next(iter(e.graph.block.parameters), None)
        owner = None if first is None else sugar_of_value(first)
        try:
            python = e.find("__class__")
        except LookupError:
            python = None
        if not isinstance(owner, ModuleValue) or not isinstance(python, type):
            e.fail("`super()` is allowed only in a method of a module")
        if arguments.positional or arguments.named:
            e.fail("`super` takes no arguments in a program")
        return _SuperModule(owner, python)


class _SuperModule(Sugared):
    """A module whose members are looked up above a class."""

    __slots__ = ("owner", "python")

    def __init__(self, owner: ModuleValue, python: type) -> None:
        self.owner = owner
        self.python = python

    def describe(self) -> str:
        return f"{self.owner.describe()} above {self.python.__name__}"

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """Return a method, which the type also has under the name of its class."""
        shape = self.owner.shape
        assert shape is not None, "a module with a method being compiled has a shape"
        classes = shape.python.__mro__
        above = classes[classes.index(self.python) + 1 :]
        home = next((each for each in above if name in vars(each)), object)
        member = vars(home).get(name)
        if member is vars(Module)["__call__"]:
            return _ModuleCall(self.owner)
        if not inspect.isfunction(member) or _is_of_python(member):
            no_attribute(e, self.describe(), name, ())
        method = f"{home.__name__}__{name}"
        begin_method(shape, method, member, e.compiler, e.since(f"super().{name}"))
        return MethodValue(self.owner, method)


class _ModuleCall(Sugared):
    """`super().__call__` where it is that of all modules."""

    __slots__ = ("owner",)

    def __init__(self, owner: ModuleValue) -> None:
        self.owner = owner

    def describe(self) -> str:
        return f"the call of {self.owner.describe()}"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        return self.owner.call_forward(e, arguments)


class UncompiledModule(UnknownObject):
    """A module that a program names although it is not a submodule: refused."""

    __slots__ = ()

    def describe(self) -> str:
        return (
            f"a module of class {type(self.python).__name__}, of outside the program,"
        )

    def refuse(self, e: Emitter) -> NoReturn:
        hint = "Make it an attribute of a module whose method this is."
        e.fail(f"{self.describe()} means nothing in it", hint)


register_value(ModuleType, ModuleValue)
register_special_form(super, Super())
register_sugar(Module, UncompiledModule)
