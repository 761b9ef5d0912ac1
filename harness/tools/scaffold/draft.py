"""Drafts of first scenarios, and the verbs of registries.

A draft has the steps and uses of a registry, as data of which a scenario is printed.
Operations are source text, in which the registry is called `registry` and what a step
returned `result`; a remark becomes a `# TODO:` comment.

A name is read as words, `addHandler` and `add_handler` alike; its verb is one of the
words and the others are its noun.  Two names are a pair if their nouns are equal and
the one verb takes back the other.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a table of one column."""
    return frozenset(text.split())


# What takes back what; the first that there is counts.
PAIRS: Mapping[str, tuple[str, ...]] = {
    "add": ("remove", "discard", "delete", "drop", "pop", "del"),
    "register": ("unregister", "deregister", "remove"),
    "connect": ("disconnect",),
    "subscribe": ("unsubscribe",),
    "push": ("pop",),
    "install": ("uninstall", "remove"),
    "enter": ("exit", "leave"),
    "attach": ("detach",),
    "enable": ("disable",),
    "bind": ("unbind",),
    "open": ("close",),
    "start": ("stop",),
    "insert": ("remove", "delete", "pop"),
    "append": ("remove", "pop"),
    "set": ("unset", "delete", "remove", "clear", "reset", "del"),
    "put": ("remove", "delete", "take"),
    "store": ("remove", "delete", "drop"),
    "mount": ("unmount", "umount"),
    "load": ("unload",),
    "link": ("unlink",),
    "hook": ("unhook",),
    "plug": ("unplug",),
    "on": ("off",),
    "listen": ("unlisten", "ignore"),
    "observe": ("unobserve",),
    "watch": ("unwatch",),
    "activate": ("deactivate",),
    "block": ("unblock",),
    "include": ("exclude", "remove"),
    "define": ("undefine", "delete", "remove"),
    "declare": ("undeclare", "remove"),
    "join": ("leave",),
    "acquire": ("release",),
    "lock": ("unlock",),
    "patch": ("unpatch",),
    "map": ("unmap",),
    "wrap": ("unwrap",),
    "assign": ("unassign",),
    "setitem": ("delitem",),
}

# Verbs that register also where nothing takes it back.
REGISTRATION_VERBS = word_set(
    """
    add append attach bind connect declare define hook include insert install listen
    mount on plug push register route subscribe setitem
    """
)

# What only looks, or calls what is registered.
LOOKUP_VERBS = word_set(
    """
    active all call contains count current dispatch emit exists fetch find fire get has
    invoke is items iter keys known list locked look lookup match names notify publish
    query registered resolve run search select send supports trigger values which
    """
)

# What a context manager is called that nothing else gives away.
SCOPE_WORDS = word_set("context override overridden scope temporarily using")

# Objects that end what made them are ended by one of these.
CLOSING_METHODS = (
    "close",
    "remove",
    "unregister",
    "unsubscribe",
    "disconnect",
    "dispose",
    "cancel",
    "detach",
    "stop",
    "release",
    "off",
)

# Functions of these act on the machine, not on a registry, and are never tried.
EXTERNAL_MODULES = word_set(
    """
    _posixsubprocess _socket _winapi ctypes ftplib http imaplib io multiprocessing nt
    os pathlib poplib posix pty shutil signal smtplib socket socketserver ssl
    subprocess tempfile urllib webbrowser winreg
    """
)


def words(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case: `addHandler` is (add, handler)."""
    parts = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+", name)
    return tuple(part.lower() for part in parts)


def inverse_of(name: str, names: Collection[str]) -> str | None:
    """The name that takes back what this one does, among those given."""
    own = words(name)
    for place, word in enumerate(own):
        for verb in PAIRS.get(word, ()):
            wanted = (*own[:place], verb, *own[place + 1 :])
            for other in names:
                if words(other) == wanted:
                    return other
    for other in names if not has_lookup_verb(name) else ():  # set_blocked, unblock
        if other != name and _is_inverse(words(other), own):
            return other
    return None


def is_registration(name: str) -> bool:
    """Whether it may register, by its name alone."""
    own = words(name)
    return bool(own) and own[0] in REGISTRATION_VERBS


def has_lookup_verb(name: str) -> bool:
    """Whether it may only look, by its name."""
    return any(word in LOOKUP_VERBS for word in words(name)[:1] + words(name)[-1:])


def is_scope(name: str) -> bool:
    """Whether it may be a context manager, by its name."""
    return any(word in SCOPE_WORDS for word in words(name))


def _is_inverse(other: tuple[str, ...], own: tuple[str, ...]) -> bool:
    head = other[:1]
    if not head or not head[0].startswith("un") or len(head[0]) < 5:
        return False
    stem = head[0].removeprefix("un")
    return any(word != head[0] and word.startswith(stem) for word in own)


# How a step ends: by this text, by what it returned, or not at all.
RETURNED = "<returned>"
Undo: TypeAlias = str | None


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step: what does it, and what undoes it (text, `RETURNED`, or None)."""

    do: str
    undo: Undo
    remark: str = ""


@dataclass(frozen=True, slots=True)
class UseDraft:
    """A use: what is asked, and whether its order follows that of registration."""

    ask: str
    unordered: bool = False
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A scenario that was tried.

    `own` says whether the target is of the project itself, `guessed` whether arguments
    of `create` were; `lines` are what is observed; `remarks` stand above the scenario.
    """

    target: str
    create: str
    kind: Literal["class", "function", "object", "module"]
    registry: str
    own: bool
    guessed: bool
    imports: tuple[str, ...]
    definitions: tuple[str, ...]
    steps: tuple[StepDraft, ...]
    uses: tuple[UseDraft, ...]
    lines: tuple[UseDraft, ...]
    remarks: tuple[str, ...] = ()
