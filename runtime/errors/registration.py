"""What can go wrong when something is registered, looked up or taken down.

True only here: the leaves are split by who must act.  A `LibraryMisuse` is mended in
the call of the library; a `Conflict` needs two registrations to be brought together,
and therefore names both; a `LookupFailed` is mended by registering what is missing.

Rule: nothing here depends on the order of registration.  Where several partners of a
conflict exist, the caller names the one that sorts first.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError


class LibraryMisuse(EveryorderError):
    """The call of a library is wrong by itself, whatever else is registered."""


class Conflict(EveryorderError):
    """Two registrations cannot both be live."""


class LookupFailed(EveryorderError, LookupError):
    """Nothing is registered under the name that was asked for."""


@dataclass(eq=False, kw_only=True)
class LibraryRefused(LibraryMisuse, ValueError):
    """`Library(...)` was given arguments that no library can have."""

    call: str
    reason: str
    remedy: str

    def render(self) -> str:
        """The call, why no library can be so, and what can."""
        return f"{self.call}: {self.reason}.\n  {self.remedy}"


@dataclass(eq=False, kw_only=True)
class CallRefused(LibraryMisuse, ValueError):
    """A method of a library was called in a way that its kind does not allow."""

    call: str
    library: str
    reason: str
    remedy: str

    def render(self) -> str:
        """The call, the library, why not there, and where."""
        return (
            f"{self.call}: {self.reason}.\n  library: {self.library}\n  {self.remedy}"
        )


@dataclass(eq=False, kw_only=True)
class NamespaceMismatch(LibraryMisuse, ValueError):
    """A name spells out another namespace than that of its library."""

    call: str
    given: str
    namespace: str
    library: str

    def render(self) -> str:
        """The call, both namespaces, and the ways out."""
        return (
            f"{self.call}: the name is in namespace {self.given!r}, the library in "
            f"{self.namespace!r}.\n  library: {self.library}\n"
            f"  Leave the namespace out of the name, or use a library of "
            f"{self.given!r}."
        )


@dataclass(eq=False, kw_only=True)
class KeyMismatch(LibraryMisuse, ValueError):
    """A dispatch key was given that differs from the library's own."""

    call: str
    given: str
    key: str
    library: str

    def render(self) -> str:
        """The call, both keys, and the ways out."""
        return (
            f"{self.call}: asks for key {self.given}, but every kernel of this library "
            f"goes to {self.key}.\n  library: {self.library}\n"
            f"  Open a second library with dispatch_key={self.given!r}, or one without "
            "a key."
        )


@dataclass(eq=False, kw_only=True)
class NotAKernel(LibraryMisuse, TypeError):
    """What was given as a kernel cannot be called."""

    call: str
    found: str

    def render(self) -> str:
        """The call, what was found, and what a kernel is."""
        return (
            f"{self.call}: a kernel is a callable, `runtime.fallthrough` or a "
            f"`Kernel`; found {self.found}."
        )


@dataclass(eq=False, kw_only=True)
class WrongArgument(LibraryMisuse, TypeError):
    """An argument of a library's call is of a class that it cannot be."""

    argument: str
    expected: str
    found: str

    def render(self) -> str:
        """The argument, what it can be, and what came."""
        return f"`{self.argument}` is {self.expected}; found {self.found}."


@dataclass(eq=False, kw_only=True)
class LibraryClosed(LibraryMisuse, RuntimeError):
    """The library has been closed and registers nothing any more."""

    call: str
    library: str

    def render(self) -> str:
        """The call and the library."""
        return (
            f"{self.call}: the library is closed.\n  library: {self.library}\n"
            "  Open a new one; its registrations went with it."
        )


@dataclass(eq=False, kw_only=True)
class CannotInfer(LibraryMisuse, ValueError):
    """A bare name was defined with a kernel that tells no schema."""

    call: str
    operator: str
    kernel: str

    def render(self) -> str:
        """The call, the kernel, and both ways to give a schema."""
        return (
            f"{self.call}: {self.operator!r} is a name without a schema, and the "
            f"kernel tells none.\n  kernel: {self.kernel}\n"
            "  Write the schema, for example "
            f'"{self.operator}(Tensor x) -> Tensor", or annotate every parameter and '
            "the return of the kernel."
        )


@dataclass(eq=False, kw_only=True)
class WriteInsideListener(LibraryMisuse, RuntimeError):
    """A listener tried to register or deregister while it was being told."""

    call: str

    def render(self) -> str:
        """The call, and when to make it."""
        return (
            f"{self.call}: called by a listener while the dispatcher tells its "
            "listeners.\n  A listener runs inside the registration that it hears of: "
            "note what is to be done, and do it after."
        )


@dataclass(eq=False, kw_only=True)
class NamespaceTaken(Conflict):
    """A second DEF library for a namespace that has a live one."""

    namespace: str
    holder: str
    newcomer: str

    def render(self) -> str:
        """Both libraries, and the ways out."""
        return (
            f"namespace {self.namespace!r} already has its DEF library.\n"
            f"  holder: {self.holder}\n  second: {self.newcomer}\n"
            "  Close the holder first, or use kind='FRAGMENT' for further definitions "
            "and kind='IMPL' for kernels."
        )


@dataclass(eq=False, kw_only=True)
class DuplicateDefinition(Conflict):
    """The same operator and overload was defined twice."""

    operator: str
    schema: str
    definition: str
    original_schema: str
    original: str

    def render(self) -> str:
        """Both definitions, and the ways out."""
        return (
            f"{self.operator} is already defined; one definition may be live at a "
            f"time.\n  live: {self.original_schema}\n        {self.original}\n"
            f"  new:  {self.schema}\n        {self.definition}\n"
            "  Close the live definition first, or give the new one an overload name."
        )


@dataclass(eq=False, kw_only=True)
class SchemaMismatch(Conflict):
    """A typed kernel takes or returns something else than the schema says."""

    operator: str
    schema: str
    definition: str
    inferred: str
    kernel: str
    key: str
    difference: str

    def render(self) -> str:
        """The schema, the kernel, and the first difference."""
        return (
            f"the kernel for {self.key} does not fit the schema of {self.operator}: "
            f"{self.difference}.\n"
            f"  schema: {self.schema}\n          {self.definition}\n"
            f"  kernel: {self.inferred}\n          {self.kernel}\n"
            "  Change the annotations of the kernel or the schema, so that both say "
            "the same."
        )


@dataclass(eq=False, kw_only=True)
class SignatureMismatch(Conflict):
    """Two typed kernels of one operator have different signatures."""

    operator: str
    signature: str
    kernel: str
    key: str
    other_signature: str
    other: str
    other_key: str

    def render(self) -> str:
        """Both kernels with their signatures."""
        return (
            f"two typed kernels of {self.operator} have different signatures.\n"
            f"  {self.other_key}: {self.other_signature}\n      {self.other}\n"
            f"  {self.key}: {self.signature}\n      {self.kernel}\n"
            "  All typed kernels of an operator take and return the same types."
        )


@dataclass(eq=False, kw_only=True)
class DuplicateFallback(Conflict):
    """A dispatch key already has a fallback."""

    key: str
    fallback: str
    original: str

    def render(self) -> str:
        """Both fallbacks."""
        remedy = "Close the live one first."
        if self.original == "built in":
            remedy = "Take a Dispatcher(builtin_fallbacks=False), which has none."
        return (
            f"key {self.key} already has a fallback, and each key has one at most.\n"
            f"  live: {self.original}\n  new:  {self.fallback}\n"
            f"  {remedy} Nothing of the new one was registered."
        )


@dataclass(eq=False, kw_only=True)
class OverrideForbidden(Conflict):
    """`allow_override=False`, and the key of the operator has a kernel."""

    operator: str
    key: str
    kernel: str
    original: str

    def render(self) -> str:
        """Both kernels."""
        return (
            f"{self.operator} already has a kernel for {self.key}, and "
            "allow_override=False was asked for.\n"
            f"  live: {self.original}\n  new:  {self.kernel}"
        )


@dataclass(eq=False, kw_only=True)
class AliasKindConflict(Conflict):
    """Two definitions whose alias analysis kinds the 2020 rule does not merge."""

    operator: str
    kind: str
    definition: str
    original_kind: str
    original: str

    def render(self) -> str:
        """Both definitions with their kinds."""
        return (
            f"the definitions of {self.operator} disagree on alias analysis.\n"
            f"  live: {self.original_kind} ({self.original})\n"
            f"  new:  {self.kind} ({self.definition})\n"
            "  A second definition may only leave the kind out."
        )


@dataclass(eq=False, kw_only=True)
class SchemaNotFound(LookupFailed):
    """No operator of that name has a schema."""

    operator: str
    implemented: bool
    near: tuple[str, ...]

    def render(self) -> str:
        """The name, what is there under it, and what is near."""
        lines = [f"no schema is registered for {self.operator}."]
        if self.implemented:
            lines.append("  Kernels are registered under this name; define it as well.")
        if self.near:
            lines.append(f"  Near: {', '.join(self.near)}.")
        return "\n".join(lines)


@dataclass(eq=False, kw_only=True)
class UnknownOperator(LookupFailed, AttributeError):
    """Nothing at all is registered under that name."""

    operator: str
    near: tuple[str, ...]

    def render(self) -> str:
        """The name and what is near."""
        text = f"no operator {self.operator} is registered."
        return f"{text}\n  Near: {', '.join(self.near)}." if self.near else text


@dataclass(eq=False, kw_only=True)
class NoKernelForKey(LookupFailed):
    """The operator has neither a direct kernel nor a fallback for the key."""

    operator: str
    key: str
    available: tuple[str, ...]

    def render(self) -> str:
        """The operator, the key, and the keys that have kernels."""
        return (
            f"{self.operator} has no kernel for {self.key}.\n"
            f"  Direct kernels: {', '.join(self.available) or 'none'}."
        )
