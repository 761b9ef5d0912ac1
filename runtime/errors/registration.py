"""Errors of registration, lookup and deregistration, and of keys and keysets.

Who must act: the author of the call (`LibraryMisuse`, `KeyMisuse`, `UnknownDevice`),
the authors of two conflicting registrations (`Conflict`, which names both), or the
owner of a missing registration or misspelt name (`LookupFailed`).

Rule: errors do not depend on the order of registration.  If a registration conflicts
with several others, the error names the one that sorts first.
"""

from typing import Literal

from everyorder.runtime.errors.base import EveryorderError, page


class LibraryMisuse(EveryorderError, ValueError, TypeError):
    """A call of a library is wrong by itself, or was made at the wrong time."""

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

    words = """
    LibraryRefused |
        {call}: {reason}.
          {remedy}
    CallRefused |
        {call}: {reason}.
          library: {library}
          {remedy}
    NamespaceMismatch |
        {call}: the name is in namespace {given!r}, the library in {namespace!r}.
          library: {library}
          Leave the namespace out of the name, or use a library of {given!r}.
    KeyMismatch |
        {call}: asks for key {given}, but every kernel of this library goes to {key}.
          library: {library}
          Open a second library with dispatch_key={given!r}, or one without a key.
    NotAKernel |
        {call}: a kernel is a callable, `runtime.fallthrough` or a `Kernel`; found \\
        {found}.
    WrongArgument | `{argument}` is {expected}; found {found}.
    CannotInfer |
        {call}: {operator!r} has no schema, and none can be inferred from the kernel.
          kernel: {kernel}
          Write the schema, for example "{operator}(Tensor x) -> Tensor", or annotate \\
          every parameter and the return of the kernel.
    PrivateDispatcher: Only the default dispatcher and its operators can be pickled or
        copied: another process cannot find this one.
      to do: send the operator's name, and look it up there
    LibraryClosed (RuntimeError) |
        {call}: the library is closed.
          library: {library}
          Open a new one; closing the old one removed its registrations.
    WriteInsideListener (RuntimeError) |
        {call}: called by a listener while the dispatcher notifies its listeners.
          A listener runs inside the registration that it is notified of: record \\
          the work, and do it afterwards.
    """


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
    handler: str = ""
    rule: str = ""

    words = """
    NamespaceTaken |
        namespace {namespace!r} already has its DEF library.
          holder: {holder}
          second: {newcomer}
          Close the holder first, or use kind='FRAGMENT' for further definitions and \\
          kind='IMPL' for kernels.
    DuplicateDefinition |
        {operator} is already defined; one definition may be live at a time.
          live: {original_schema}
                {original}
          new:  {schema}
                {definition}
          Close the live definition first, or give the new one an overload name.
    SchemaMismatch |
        the kernel for {key} does not fit the schema of {operator}: {difference}.
          schema: {schema}
                  {definition}
          kernel: {inferred}
                  {kernel}
          Change the annotations of the kernel or the schema, so that both say the same.
    SignatureMismatch |
        two typed kernels of {operator} have different signatures.
          {other_key}: {other_signature}
              {other}
          {key}: {signature}
              {kernel}
          All typed kernels of an operator take and return the same types.
    DuplicateFallback |
        key {key} already has a fallback, and each key has one at most.
          live: {original}
          new:  {fallback}
          {_remedy} Nothing of the new one was registered.
    OverrideForbidden |
        {operator} already has a kernel for {key}, and the call passes \\
        allow_override=False.
          live: {original}
          new:  {kernel}
    AliasKindConflict |
        the definitions of {operator} disagree on alias analysis.
          live: {original_kind} ({original})
          new:  {kind} ({definition})
          A second definition may only leave the kind out.
    RuleTaken (ValueError): `{handler}` has a rule for `{operator}` already.
      live: {original}
      refused: {rule}
      to do: close the registration of the live one, or the library that owns it
    """

    @property
    def _remedy(self) -> str:
        if self.original == "built in":
            return "Use a Dispatcher(builtin_fallbacks=False), which has none."
        return "Close the live one first."


class LookupFailed(EveryorderError, LookupError):
    """No operator, key or device has the requested name, or it has no kernel.

    `near` lists existing names similar to it; keys and operators are case sensitive.
    """

    operator: str = ""
    implemented: bool = False
    near: tuple[str, ...] = ()
    key: str = ""
    available: tuple[str, ...] = ()
    overload: str = ""
    name: str = ""
    known: tuple[str, ...] = ()
    device: str = ""

    words = """
    SchemaNotFound | no schema is registered for {operator}.{_hint}
    NoKernelForKey |
        {operator} has no kernel for {key}.
          Direct kernels: {available:, |none}.
    UnknownOperator (AttributeError) | no operator {operator} is registered.{_hint}
    NoSuchOverload (AttributeError): `{operator}` has no overload `{overload}`.
      near: {near:, }
    UnknownKey (KeyError) |
        no dispatch key is named {name!r}.  \\
        [[Did you mean {near:, / or }?||`list(DispatchKey)` lists them all.]]
    UnknownBackend (KeyError) | no backend is named {name!r}.  Backends: {known:, }.
    NoSuchKernel: `{operator}` has no kernel registered directly for {device!r}, so it
        cannot be switched.
      kernels: {known:, |none}
    """

    @property
    def _hint(self) -> str:
        near = f"\n  Near: {', '.join(self.near)}." if self.near else ""
        if not self.implemented:
            return near
        return f"\n  Kernels are registered under this name; define it as well.{near}"


class AlreadyRegistered(EveryorderError, ValueError):
    """A key of a registry is registered a second time, by the places of both calls."""

    registry: str
    key: str
    first: str
    again: str

    words = """
    AlreadyRegistered |
        {registry}: {key} is registered at {first}, and again at {again}; \\
        close the first registration, or choose another key
    """


class UnknownDevice(EveryorderError, ValueError, RuntimeError):
    """A device string is not `type` or `type:index`, or does not name a known type."""

    device: str
    reason: Literal["type", "form"]
    known: tuple[str, ...]
    near: tuple[str, ...] = ()

    def render(self) -> str:
        """Return the fault of the string, and for an unknown type the list of types."""
        if self.reason == "form":
            return page(
                f"{self.device!r} is not a device: write a type, or a type and an "
                f"index without leading zeros, such as 'cuda' or 'cuda:1'."
            )
        near = [("near", ", ".join(self.near))] if self.near else []
        return page(
            f"{self.device!r} does not begin with a known device type.",
            *near,
            ("types", ", ".join(self.known)),
        )


class KeyMisuse(EveryorderError):
    """A key or keyset does not support the operation, or a guard is used wrongly.

    A guard is exited in another thread than the one that entered it, or too often.
    """

    key: str = ""
    subject: Literal["kernel", "fallback"] = "kernel"
    reason: Literal["building block", "undefined"] = "building block"
    instead: tuple[str, ...] = ()
    bits: int = 0
    full: int = 0
    guard: str = ""

    words = """
    NotRegistrable (ValueError) |
        a {subject} cannot be registered at {key}: {_why}.  \\
        Register at {instead:, / or }.
    NoPriority (ValueError) |
        nothing comes after {key}: it has no place in the order of keys.  Use a \\
        runtime key or a functionality, such as AutogradCPU.
    ForeignBits (ValueError) |
        {bits:#x} is not a set of keys: expected bits between 0 and {full:#x}.
    GuardLeftElsewhere (RuntimeError): `{guard}` was entered in another thread: a guard
        belongs to the thread that entered it, and the keys of this one stay as they
        are.
      to do: leave it where it was entered; a generator that is suspended inside of it:
        close or exhaust it in that thread
    GuardNotEntered (RuntimeError): `{guard}` is left more often than it was entered.
      to do: leave it once for each time it was entered, as `with` does
    """

    @property
    def _why(self) -> str:
        if self.reason == "undefined":
            return "it means that a call has no keys left"
        return "it is only half of a key, and calls dispatch to whole keys"
