"""Errors about dispatch keys, keysets, guards over keys, and device names.

True only here: nothing beyond the rules of `runtime.errors.base`.  Each leaf is for
whoever wrote the name: an unknown one comes with its neighbours, a known one that
does not fit comes with those that do.
"""

from dataclasses import dataclass
from typing import Literal

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


def _choices(names: tuple[str, ...]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} or {names[-1]}"


@dataclass(eq=False, kw_only=True)
class UnknownKey(EveryorderError, KeyError):
    """No dispatch key has this name; names are case sensitive."""

    name: str
    near: tuple[str, ...] = ()

    def render(self) -> str:
        """Says which name was not found, and which ones are close."""
        text = f"no dispatch key is named {self.name!r}."
        if self.near:
            return f"{text}  Did you mean {_choices(self.near)}?"
        return f"{text}  `list(DispatchKey)` holds them all."


@dataclass(eq=False, kw_only=True)
class UnknownBackend(EveryorderError, KeyError):
    """No backend component has this name."""

    name: str
    known: tuple[str, ...]

    def render(self) -> str:
        """Says which name was not found, and lists all backends."""
        return f"no backend is named {self.name!r}.  Backends: {', '.join(self.known)}."


@dataclass(eq=False, kw_only=True)
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


@dataclass(eq=False, kw_only=True)
class NotRegistrable(EveryorderError, ValueError):
    """A kernel or fallback cannot live at this key."""

    key: str
    subject: Literal["kernel", "fallback"]
    reason: Literal["building block", "undefined"]
    instead: tuple[str, ...]

    def render(self) -> str:
        """Says why the key takes nothing, and which keys do."""
        if self.reason == "undefined":
            why = "it stands for a call in which no key is left"
        else:
            why = "it is half a key, and calls go to whole ones"
        return (
            f"a {self.subject} cannot be registered at {self.key}: {why}.  "
            f"Register at {_choices(self.instead)}."
        )


@dataclass(eq=False, kw_only=True)
class NoPriority(EveryorderError, ValueError):
    """ "After this key" was asked of a key without a place in the order."""

    key: str

    def render(self) -> str:
        """Says which key has no place, and which kinds have one."""
        return (
            f"nothing comes after {self.key}: it has no place in the order of keys.  "
            f"Take a runtime key or a functionality, such as AutogradCPU."
        )


@dataclass(eq=False, kw_only=True)
class ForeignBits(EveryorderError, ValueError):
    """Raw bits that no keyset can have."""

    bits: int
    full: int

    def render(self) -> str:
        """Shows the bits and the range."""
        return (
            f"{self.bits:#x} is not a set of keys: bits lie between 0 and "
            f"{self.full:#x}."
        )


@dataclass(eq=False, kw_only=True)
class GuardLeftElsewhere(EveryorderError, RuntimeError):
    """A guard over the keys of a thread is left in another thread."""

    guard: str

    def render(self) -> str:
        """The guard, whose it is, and what to do."""
        return page(
            f"`{self.guard}` was entered in another thread: a guard belongs to the "
            "thread that entered it, and the keys of this one stay as they are.",
            (
                "to do",
                "leave it where it was entered; a generator that is suspended inside "
                "of it: close or exhaust it in that thread",
            ),
        )


@dataclass(eq=False, kw_only=True)
class GuardNotEntered(EveryorderError, RuntimeError):
    """A guard over the keys of a thread is left more often than it was entered."""

    guard: str

    def render(self) -> str:
        """The guard, and what to do."""
        return page(
            f"`{self.guard}` is left more often than it was entered.",
            ("to do", "leave it once for each time it was entered, as `with` does"),
        )
