"""Modules: objects that hold parameters, buffers and modules, and compute.

This module defines the attributes of a module and the calls of modules.  The names,
including the private ones of the tables, are those of `torch.nn.Module`.

Rules:
- an assigned `Parameter` or module becomes a member of that name; a tensor becomes one
  only if the name is that of a buffer; other values are ordinary attributes;
- a name belongs to one member or one attribute: the last assignment counts;
- a call runs the pre-hooks, `forward`, and the hooks, in the order of registration;
  each may replace its input or result;
- a copy, deep or pickled, has copies of all members, which are shared like the
  originals.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from everyorder.runtime.autograd.node import HookTable, RemovableHandle
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.future import describe_type
from everyorder.runtime.errors.script import ModuleError
from everyorder.runtime.nn.members import (
    BUFFERS,
    MODULES,
    PARAMETERS,
    IncompatibleKeys,
    Parameter,
    give_state,
    members_within,
    modules_within,
    state_of,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors import Tensor
from everyorder.runtime.tensors.dtype_info import DIFFERENTIABLE

_TABLES = (PARAMETERS, BUFFERS, MODULES)
_WORDS = {PARAMETERS: "`Parameter`", BUFFERS: "tensor", MODULES: "module"}


class Module:
    """Base of modules; the `__init__` of a subclass calls `super().__init__()` first.

    `training` is True while the module is being trained; `forward` computes its result.
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, "Module | None"]
    _non_persistent_buffers_set: set[str]
    _forward_hooks: HookTable
    _forward_pre_hooks: HookTable
    _hooks_with_kwargs: set[int]

    def __init__(self) -> None:
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _modules={},
            _non_persistent_buffers_set=set(),
            _forward_hooks=HookTable(),
            _forward_pre_hooks=HookTable(),
            _hooks_with_kwargs=set(),
        )

    # Calls.

    def forward(self, *_args: Any, **_kwargs: Any) -> Any:
        """Compute the result; each class of modules defines it."""
        raise ModuleError(code="NoForward", module=type(self).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call `forward`, through the hooks."""
        if not self._forward_pre_hooks and not self._forward_hooks:
            return self.forward(*args, **kwargs)
        for number, hook in [*self._forward_pre_hooks.items()]:
            if number in self._hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
                continue
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for number, hook in [*self._forward_hooks.items()]:
            named = number in self._hooks_with_kwargs
            operands = (args, kwargs, result) if named else (args, result)
            changed = hook(self, *operands)
            if changed is not None:
                result = changed
        return result

    def register_forward_pre_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> RemovableHandle:
        """Run `hook(module, args)` before each call; its result replaces `args`.

        With `with_kwargs`, run `hook(module, args, kwargs)`, which returns both.
        """
        return self._register(self._forward_pre_hooks, hook, prepend, with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> RemovableHandle:
        """Run `hook(module, args, result)` after each call; it may replace the result.

        With `with_kwargs`, run `hook(module, args, kwargs, result)`.
        """
        return self._register(self._forward_hooks, hook, prepend, with_kwargs)

    def _register(
        self, table: HookTable, hook: Callable[..., Any], first: bool, with_kwargs: bool
    ) -> RemovableHandle:
        before = [*table.items()]
        handle = RemovableHandle(table, hook)
        if with_kwargs:
            self._hooks_with_kwargs.add(next(reversed(table)))
        if first:
            for number, each in before:
                del table[number]
                table[number] = each
        return handle

    # Members.

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None as a placeholder for one, as a member."""
        self._put(PARAMETERS, name, param, Parameter)

    def register_buffer(
        self, name: str, tensor: Tensor | None, persistent: bool = True
    ) -> None:
        """Add a tensor that is not learned; it is in the state if `persistent`."""
        self._put(BUFFERS, name, tensor, Tensor)
        change = "discard" if persistent else "add"
        getattr(self._non_persistent_buffers_set, change)(name)

    def register_module(self, name: str, module: "Module | None") -> None:
        """Add a module, or None as a placeholder for one, as a member."""
        self._put(MODULES, name, module, Module)

    def add_module(self, name: str, module: "Module | None") -> None:
        """Add a module; the same as `register_module`."""
        self.register_module(name, module)

    def _put(self, kind: str, name: Any, value: Any, expected: type) -> None:
        of = type(self).__name__
        if PARAMETERS not in self.__dict__:
            raise ModuleError(code="ModuleNotInitialized", module=of, member=str(name))
        reason = None
        if value is not None and not isinstance(value, expected):
            reason = f"{describe_type(value)} is not a {_WORDS[kind]}"
        elif not isinstance(name, str):
            reason = f"a name is a string, not {describe_type(name)}"
        elif "." in name or not name:
            reason = "a name is not empty and has no dots"
        elif name not in self.__dict__[kind] and hasattr(self, name):
            reason = "there is an attribute of this name"
        if reason is not None:
            raise ModuleError(
                code="UnfitMember", module=of, member=str(name), reason=reason
            )
        self.__dict__[kind][name] = value

    def __setattr__(self, name: str, value: Any) -> None:
        kind = PARAMETERS if isinstance(value, Parameter) else None
        if kind is None and isinstance(value, Module):
            kind = MODULES
        tables = self.__dict__
        if kind is None:
            for each in _TABLES:
                if name in tables.get(each, ()):
                    self._replace(each, name, value)
                    return
            object.__setattr__(self, name, value)
            return
        if kind not in tables:
            raise ModuleError(
                code="ModuleNotInitialized", module=type(self).__name__, member=name
            )
        if kind is PARAMETERS and name in tables[BUFFERS]:
            tables[BUFFERS][name] = value
            return
        tables.pop(name, None)
        for each in _TABLES:
            if each != kind:
                tables[each].pop(name, None)
        tables["_non_persistent_buffers_set"].discard(name)
        tables[kind][name] = value

    def _replace(self, kind: str, name: str, value: Any) -> None:
        """Replace a member by a value that is not a member, if the kind permits it."""
        fits = value is None or (kind == BUFFERS and isinstance(value, Tensor))
        if not fits:
            reason = (
                f"only a {_WORDS[kind]} or None replaces the existing one, not "
                f"{describe_type(value)}"
            )
            raise ModuleError(
                code="UnfitMember",
                module=type(self).__name__,
                member=name,
                reason=reason,
            )
        self.__dict__[kind][name] = value

    def __getattr__(self, name: str) -> Any:
        for kind in _TABLES:
            table = self.__dict__.get(kind)
            if table is not None and name in table:
                return table[name]
        raise ModuleError(
            code="NoSuchMember",
            module=type(self).__name__,
            wanted="attribute",
            path=name,
            near=() if name.startswith("__") else nearest(name, self._names()),
        )

    def __delattr__(self, name: str) -> None:
        for kind in _TABLES:
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def _names(self) -> list[str]:
        tables = [self.__dict__.get(kind, {}) for kind in _TABLES]
        own = [name for name in self.__dict__ if not name.startswith("_")]
        return [*own, *(name for table in tables for name in table)]

    def __dir__(self) -> list[str]:
        names = {*object.__dir__(self), *self._names()}
        return sorted(name for name in names if not name[:1].isdigit())

    # Iteration.

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Return the parameters of all modules within, with their paths."""
        return members_within(self, PARAMETERS, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Return the parameters of all modules within."""
        return (each for _, each in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Return the buffers of all modules within, with their paths."""
        return members_within(self, BUFFERS, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Return the buffers of all modules within."""
        return (each for _, each in self.named_buffers(recurse=recurse))

    def named_modules(
        self,
        memo: set[int] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, "Module"]]:
        """Return the module and all within it, with paths; skip the ids in `memo`."""
        return modules_within(self, prefix, remove_duplicate, memo)

    def modules(self) -> Iterator["Module"]:
        """Return the module and all within it."""
        return (each for _, each in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """Yield the modules that are members, with their names."""
        visited: set[int] = set()
        for name, each in self._modules.items():
            if each is not None and id(each) not in visited:
                visited.add(id(each))
                yield name, each

    def children(self) -> Iterator["Module"]:
        """Return the modules that are members."""
        return (each for _, each in self.named_children())

    def get_submodule(self, target: str) -> "Module":
        """Return the module at a path; "" is this one.  Raises `ModuleError`."""
        module: Any = self
        for name in target.split(".") if target else ():
            children = module._modules
            if children.get(name) is None:
                raise ModuleError(
                    code="NoSuchMember",
                    module=type(self).__name__,
                    wanted="module",
                    path=target,
                    near=nearest(target, [path for path, _ in self.named_modules()]),
                )
            module = children[name]
        return module  # type: ignore[no-any-return]  # the tables are of modules

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a path.  Raises `ModuleError`."""
        parameter: Parameter = self._member(target, PARAMETERS, "parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a path.  Raises `ModuleError`."""
        buffer: Tensor = self._member(target, BUFFERS, "buffer")
        return buffer

    def _member(self, target: str, kind: str, noun: str) -> Any:
        path, _, name = target.rpartition(".")
        member = getattr(self.get_submodule(path), kind).get(name)
        if member is None:
            candidates = [
                path for path, _ in members_within(self, kind, "", True, False)
            ]
            raise ModuleError(
                code="NoSuchMember",
                module=type(self).__name__,
                wanted=noun,
                path=target,
                near=nearest(target, candidates),
            )
        return member

    # Changes of all modules within.

    def apply(self, fn: Callable[["Module"], Any]) -> Self:
        """Call a function with each module, children first."""
        for each in self.children():
            each.apply(fn)
        fn(self)
        return self

    def train(self, mode: Any = True) -> Self:
        """Set the training mode, True or False, of all modules within."""
        if not isinstance(mode, bool):
            reason = f"it is a bool, not {describe_type(mode)}"
            raise ModuleError(
                code="UnfitMember",
                module=type(self).__name__,
                member="training",
                reason=reason,
            )
        self.training = mode
        for each in self.children():
            each.train(mode)
        return self

    def eval(self) -> Self:
        """Set the evaluation mode; the same as `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters."""
        for each in self.parameters():
            each.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients, or fill them with zeros."""
        for each in self.parameters():
            if each.grad is not None and not set_to_none:
                each.grad = each.grad.detach().zero_()
            else:
                each.grad = None

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move all parameters and buffers, as `Tensor.to` moves one.

        A dtype applies to floating-point and complex members only.
        """
        plain = [each for each in args if not isinstance(each, DType)]
        named = {name: each for name, each in kwargs.items() if name != "dtype"}

        def moved(each: Tensor) -> Tensor:
            if each.dtype in DIFFERENTIABLE:
                return each.to(*args, **kwargs)
            return each.to(*plain, **named) if plain or named else each

        return self._apply(moved)

    def float(self) -> Self:
        """Convert floating-point members to float32."""
        return self.to(DType.named("float32"))

    def double(self) -> Self:
        """Convert floating-point members to float64."""
        return self.to(DType.named("float64"))

    def half(self) -> Self:
        """Convert floating-point members to float16."""
        return self.to(DType.named("float16"))

    def bfloat16(self) -> Self:
        """Convert floating-point members to bfloat16."""
        return self.to(DType.named("bfloat16"))

    def cpu(self) -> Self:
        """Move everything to the host."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Self:
        """Move everything to a CUDA device."""
        return self.to("cuda" if device is None else device)

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Replace all parameters and buffers by the results of a function."""
        changed: dict[int, Any] = {}
        for each in self.modules():
            for table in (each._parameters, each._buffers):
                for name, value in table.items():
                    if value is not None:
                        if id(value) not in changed:
                            changed[id(value)] = value, _changed(value, fn)
                        table[name] = changed[id(value)][1]
        return self

    # State and text.

    def state_dict(
        self,
        *,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Return the parameters and persistent buffers by their paths.

        They share their elements with the module; with `keep_vars`, they are its
        tensors.
        """
        return state_of(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy a state into the module; with `assign`, its tensors become members.

        Returns the keys without a counterpart.

        Raises:
            NotReplaceable: there are such keys and it is `strict`, or a tensor has
                another shape; nothing has been copied.
        """
        return give_state(self, state_dict, strict, assign)

    def extra_repr(self) -> str:
        """Return the text of the module except its modules."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Return the names and texts of the modules that are members."""
        return ((name, repr(each)) for name, each in self._modules.items())

    def __repr__(self) -> str:
        extra = self.extra_repr()
        if not self._modules and "\n" not in extra:
            return f"{self._get_name()}({extra})"
        lines = extra.split("\n") if extra else []
        for name, text in self._texts():
            lines.append(f"({name}): " + text.replace("\n", "\n  "))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


def _changed(value: Tensor, fn: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the result of a function for a member; a parameter stays one."""
    if not isinstance(value, Parameter):
        return fn(value)
    new = fn(value.detach())
    if new.dtype is value.dtype and new.device is value.device:
        value.data = new
        return value
    parameter = Parameter(new, value.requires_grad)
    if value.grad is not None:
        parameter.grad = fn(value.grad)
    return parameter
