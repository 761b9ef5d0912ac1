"""Errors of registering, looking up and taking down, and of keys and keysets.

Who must act: whoever wrote the call (`LibraryMisuse`, `KeyMisuse`, `GuardMisuse`, the
unknown names), whoever can bring two registrations together (`Conflict`, which names
both), or whoever registers what is missing (`LookupFailed`).

Rule: nothing here depends on the order of registration.  Where several partners of a
conflict exist, the caller names the one that sorts first.
"""

from typing import ClassVar, Literal

from runtime.errors.base import EveryorderError, Words, page


class LibraryMisuse(EveryorderError, ValueError, TypeError):
    """The call of a library is wrong by itself, whatever else is registered."""

    call: str = ""
    reason: str = ""
    remedy: str = ""
    library: str = ""
    given: str = ""
    namespace: str = ""
    key: str = ""
    found: str = ""
    argument: str = ""
    expected: str = ""
    operator: str = ""
    kernel: str = ""

    words: ClassVar[Words] = {
        "LibraryRefused": ("{call}: {reason}.\n  {remedy}"),
        "CallRefused": ("{call}: {reason}.\n  library: {library}\n  {remedy}"),
        "NamespaceMismatch": (
            "{call}: the name is in namespace {given!r}, the library in "
            "{namespace!r}.\n  library: {library}\n  Leave the namespace out of "
            "the name, or use a library of {given!r}."
        ),
        "KeyMismatch": (
            "{call}: asks for key {given}, but every kernel of this library goes "
            "to {key}.\n  library: {library}\n  Open a second library with "
            "dispatch_key={given!r}, or one without a key."
        ),
        "NotAKernel": (
            "{call}: a kernel is a callable, `runtime.fallthrough` or a "
            "`Kernel`; found {found}."
        ),
        "WrongArgument": ("`{argument}` is {expected}; found {found}."),
        "CannotInfer": (
            "{call}: {operator!r} is a name without a schema, and the kernel "
            "tells none.\n  kernel: {kernel}\n  Write the schema, for example "
            '"{operator}(Tensor x) -> Tensor", or annotate every parameter and '
            "the return of the kernel."
        ),
        "PrivateDispatcher": (
            "Only the default dispatcher and its operators can be pickled or "
            "copied: nothing says where another process has this one.",
            ("to do", "send the operator's name, and look it up there"),
        ),
    }


class LibraryClosed(LibraryMisuse, RuntimeError):
    """The library has been closed and registers nothing any more."""

    words: ClassVar[Words] = {
        "LibraryClosed": (
            "{call}: the library is closed.\n  library: {library}\n  Open a new "
            "one; its registrations went with it."
        ),
    }


class WriteInsideListener(LibraryMisuse, RuntimeError):
    """A listener tried to register or deregister while it was being told."""

    words: ClassVar[Words] = {
        "WriteInsideListener": (
            "{call}: called by a listener while the dispatcher tells its "
            "listeners.\n  A listener runs inside the registration that it hears "
            "of: note what is to be done, and do it after."
        ),
    }


class Conflict(EveryorderError):
    """Two registrations cannot both be live."""

    namespace: str = ""
    holder: str = ""
    newcomer: str = ""
    operator: str = ""
    schema: str = ""
    definition: str = ""
    original_schema: str = ""
    original: str = ""
    inferred: str = ""
    kernel: str = ""
    key: str = ""
    difference: str = ""
    signature: str = ""
    other_signature: str = ""
    other: str = ""
    other_key: str = ""
    fallback: str = ""
    kind: str = ""
    original_kind: str = ""

    words: ClassVar[Words] = {
        "NamespaceTaken": (
            "namespace {namespace!r} already has its DEF library.\n  holder: "
            "{holder}\n  second: {newcomer}\n  Close the holder first, or use "
            "kind='FRAGMENT' for further definitions and kind='IMPL' for kernels."
        ),
        "DuplicateDefinition": (
            "{operator} is already defined; one definition may be live at a "
            "time.\n  live: {original_schema}\n        {original}\n  new:  "
            "{schema}\n        {definition}\n  Close the live definition first, "
            "or give the new one an overload name."
        ),
        "SchemaMismatch": (
            "the kernel for {key} does not fit the schema of {operator}: "
            "{difference}.\n  schema: {schema}\n          {definition}\n  "
            "kernel: {inferred}\n          {kernel}\n  Change the annotations of "
            "the kernel or the schema, so that both say the same."
        ),
        "SignatureMismatch": (
            "two typed kernels of {operator} have different signatures.\n  "
            "{other_key}: {other_signature}\n      {other}\n  {key}: "
            "{signature}\n      {kernel}\n  All typed kernels of an operator "
            "take and return the same types."
        ),
        "DuplicateFallback": (
            "key {key} already has a fallback, and each key has one at most.\n  "
            "live: {original}\n  new:  {fallback}\n  {_remedy} Nothing of the "
            "new one was registered."
        ),
        "OverrideForbidden": (
            "{operator} already has a kernel for {key}, and allow_override=False "
            "was asked for.\n  live: {original}\n  new:  {kernel}"
        ),
        "AliasKindConflict": (
            "the definitions of {operator} disagree on alias analysis.\n  live: "
            "{original_kind} ({original})\n  new:  {kind} ({definition})\n  A "
            "second definition may only leave the kind out."
        ),
    }

    @property
    def _remedy(self) -> str:
        if self.original == "built in":
            return "Take a Dispatcher(builtin_fallbacks=False), which has none."
        return "Close the live one first."


class LookupFailed(EveryorderError, LookupError):
    """Nothing is registered under the name that was asked for."""

    operator: str
    implemented: bool = False
    near: tuple[str, ...] = ()
    key: str = ""
    available: tuple[str, ...] = ()

    words: ClassVar[Words] = {
        "SchemaNotFound": ("no schema is registered for {operator}.{_hint}"),
        "NoKernelForKey": (
            "{operator} has no kernel for {key}.\n  Direct kernels: {available:, "
            "|none}."
        ),
    }

    @property
    def _hint(self) -> str:
        near = f"\n  Near: {', '.join(self.near)}." if self.near else ""
        if not self.implemented:
            return near
        return f"\n  Kernels are registered under this name; define it as well.{near}"


class UnknownOperator(LookupFailed, AttributeError):
    """Nothing at all is registered under that name."""

    words: ClassVar[Words] = {
        "UnknownOperator": ("no operator {operator} is registered.{_hint}"),
    }


class UnknownKey(EveryorderError, KeyError):
    """No dispatch key, or no backend, has this name; names are case sensitive."""

    name: str
    near: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    words: ClassVar[Words] = {
        "UnknownKey": ("no dispatch key is named {name!r}.  {_guess}"),
        "UnknownBackend": ("no backend is named {name!r}.  Backends: {known:, }."),
    }

    @property
    def _guess(self) -> str:
        if not self.near:
            return "`list(DispatchKey)` holds them all."
        *most, last = self.near
        return f"Did you mean {', '.join(most)}{' or ' * bool(most)}{last}?"


class UnknownDevice(EveryorderError, ValueError):
    """A device string is not `type` or `type:index`, or names no known type."""

    device: str
    reason: Literal["type", "form"]
    known: tuple[str, ...]
    near: tuple[str, ...] = ()

    def render(self) -> str:
        """Says what is wrong with the string, and lists the device types."""
        if self.reason == "form":
            return page(
                f"{self.device!r} is not a device: write a type, or a type and an "
                f"index without leading zeros, such as 'cuda' or 'cuda:1'."
            )
        return page(
            f"{self.device!r} does not begin with a known device type.",
            *((("near", ", ".join(self.near)),) if self.near else ()),
            ("types", ", ".join(self.known)),
        )


class KeyMisuse(EveryorderError, ValueError):
    """A key, or a set of keys, is not for what was asked of it."""

    key: str = ""
    subject: Literal["kernel", "fallback"] = "kernel"
    reason: Literal["building block", "undefined"] = "building block"
    instead: tuple[str, ...] = ()
    bits: int = 0
    full: int = 0

    words: ClassVar[Words] = {
        "NotRegistrable": (
            "a {subject} cannot be registered at {key}: {_why}.  Register at "
            "{instead:, / or }."
        ),
        "NoPriority": (
            "nothing comes after {key}: it has no place in the order of keys.  "
            "Take a runtime key or a functionality, such as AutogradCPU."
        ),
        "ForeignBits": (
            "{bits:#x} is not a set of keys: bits lie between 0 and {full:#x}."
        ),
    }

    @property
    def _why(self) -> str:
        if self.reason == "undefined":
            return "it stands for a call in which no key is left"
        return "it is half a key, and calls go to whole ones"


class GuardMisuse(EveryorderError, RuntimeError):
    """A guard over the keys of a thread is left in another thread, or too often."""

    guard: str

    words: ClassVar[Words] = {
        "GuardLeftElsewhere": (
            "`{guard}` was entered in another thread: a guard belongs to the "
            "thread that entered it, and the keys of this one stay as they are.",
            (
                "to do",
                "leave it where it was entered; a generator that is suspended "
                "inside of it: close or exhaust it in that thread",
            ),
        ),
        "GuardNotEntered": (
            "`{guard}` is left more often than it was entered.",
            ("to do", "leave it once for each time it was entered, as `with` does"),
        ),
    }
