"""What can be done to the real torch, as plain data.

True only here: nothing in this file touches torch.  A step or a call is a frozen
description in the words of our own `Library`, so that one list of descriptions can
drive torch and our dispatcher alike.

How the descriptions map (torch's name is what `bindings` calls):

    TorchDefine            def_ / def_legacy      Library.define(schema, alias_analysis)
    TorchDefineInferred    def_name_t_t           Library.define(name, kernel=...)
    TorchDefineWithKernel  def_schema_t_t         Library.define(schema, kernel=...)
    TorchImpl              impl_t_t / impl        Library.impl(op, kernel, key)
    TorchFallback          fallback[_fallthrough] Library("_", "IMPL").fallback(...)

Rules:
- every step owns one library object of its own; undoing the step resets it;
- `origin` is `FILE:LINE` of that library object; torch prints `registered at ORIGIN`
  for a definition, and for every kernel that is not the native one;
- `debug` replaces the description of a native kernel only (`t_t`): torch offers no
  way to describe a Python kernel or a fallthrough other than by the origin;
- torch 2.13 has one native kernel, `(Tensor) -> Tensor`, which returns its argument;
  the two-argument one of the first releases is gone, so a schema mismatch is made
  by the schema, and a mismatch of typed signatures cannot be made from Python.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

# What a library object prints when nobody tells it where it stands (torch's default).
UNKNOWN_ORIGIN = "/dev/null:0"

AliasKind: TypeAlias = Literal[
    "", "FROM_SCHEMA", "CONSERVATIVE", "PURE_FUNCTION", "unset"
]
KernelKind: TypeAlias = Literal["t_t", "python", "fallthrough"]
Layout: TypeAlias = Literal["cpu", "meta", "sparse", "csr", "mkldnn"]


@dataclass(frozen=True, slots=True)
class TorchDefine:
    """Define an operator by a schema; alias kind `unset` is a raw parsed schema."""

    schema: str
    alias: AliasKind = ""
    library: Literal["FRAGMENT", "DEF"] = "FRAGMENT"
    origin: str = UNKNOWN_ORIGIN


@dataclass(frozen=True, slots=True)
class TorchDefineInferred:
    """Define the operator by the native kernel's own schema and add that kernel."""

    key: str | None = None
    debug: str = "default_def_name_t_t"
    library: Literal["FRAGMENT", "DEF"] = "FRAGMENT"
    origin: str = UNKNOWN_ORIGIN


@dataclass(frozen=True, slots=True)
class TorchDefineWithKernel:
    """Define the operator by a schema and add the native kernel, in one step."""

    schema: str
    key: str | None = None
    alias: Literal["", "FROM_SCHEMA", "CONSERVATIVE", "PURE_FUNCTION"] = ""
    debug: str = "default_def_schema_t_t"
    library: Literal["FRAGMENT", "DEF"] = "FRAGMENT"
    origin: str = UNKNOWN_ORIGIN


@dataclass(frozen=True, slots=True)
class TorchImpl:
    """Add a kernel to the operator; no key means CompositeImplicitAutograd.

    Raises ValueError where `debug` is given to a kernel that torch describes by its
    origin.
    """

    key: str | None
    kind: KernelKind = "t_t"
    debug: str | None = None
    origin: str = UNKNOWN_ORIGIN

    def __post_init__(self) -> None:
        if self.debug is not None and self.kind != "t_t":
            raise ValueError(
                f"torch describes a {self.kind} kernel by its origin;"
                f" give origin= instead of debug={self.debug!r}"
            )

    @property
    def printed(self) -> str:
        """What torch's dumps call this kernel."""
        if self.kind == "t_t":
            return "impl_t_t" if self.debug is None else self.debug
        return f"registered at {self.origin}"


@dataclass(frozen=True, slots=True)
class TorchFallback:
    """Add a kernel for every operator at `key`; an alias key takes all its keys."""

    key: str
    kind: Literal["fallthrough", "python"] = "fallthrough"
    origin: str = UNKNOWN_ORIGIN

    @property
    def printed(self) -> str:
        """What torch's table calls this kernel."""
        return f"registered at {self.origin}"


@dataclass(frozen=True, slots=True)
class TorchCall:
    """A real call, as a probe or as a use.

    `slot` names a runtime key whose live table entry is entered directly, past the
    keys of the arguments.
    """

    requires_grad: bool = False
    layout: Layout = "cpu"
    arguments: int = 1
    slot: str | None = None


TorchStep: TypeAlias = (
    TorchDefine
    | TorchDefineInferred
    | TorchDefineWithKernel
    | TorchImpl
    | TorchFallback
)


def kernel_label(step: TorchStep) -> str:
    """Where the step's kernel stands, as a probe names it."""
    if isinstance(step, TorchFallback):
        return f"fallback {step.key}"
    return getattr(step, "key", None) or "CompositeImplicitAutograd"
