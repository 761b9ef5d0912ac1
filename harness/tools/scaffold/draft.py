"""Drafts of first scenarios, and the verbs of registries.

A draft has the steps and uses of a registry, as data from which a scenario is printed.
Operations are source text, in which the registry is called `registry` and the result of
a step `result`; a remark becomes a `# TODO:` comment.

A name is split into words, `addHandler` and `add_handler` alike; its verb is one of the
words and the others are its noun. Two names are a pair if their nouns are equal and one
verb is an inverse of the other.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, as a table of one column."""
    return frozenset(text.split())


# The inverses of each verb; the first that exists counts.
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

# Verbs that register even without an inverse.
REGISTRATION_VERBS = word_set(
    """
    add append attach bind connect declare define hook include insert install listen
    mount on plug push register route subscribe setitem
    """
)

# Verbs that only look, or call a registered object.
LOOKUP_VERBS = word_set(
    """
    active all call contains count current dispatch emit exists fetch find fire get has
    invoke is items iter keys known list locked look lookup match names notify publish
    query registered resolve run search select send supports trigger values which
    """
)

# Words in the names of context managers that cannot be detected otherwise.
SCOPE_WORDS = word_set("context override overridden scope temporarily using")

# Methods of a returned object that undo the call, by preference.
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

# Functions of these modules act on the machine, not on a registry, and are never tried.
EXTERNAL_MODULES = word_set(
    """
    _posixsubprocess _socket _winapi ctypes ftplib http imaplib io multiprocessing nt
    os pathlib poplib posix pty shutil signal smtplib socket socketserver ssl
    subprocess tempfile urllib webbrowser winreg
    """
)


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case: `addHandler` is (add, handler)."""
    parts = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+", name)
    return tuple(part.lower() for part in parts)


def inverse_of(name: str, names: Collection[str]) -> str | None:
    """Return the name among `names` that is the inverse of `name`, or None."""
    own = words(name)
    for place, word in enumerate(own):
        for verb in PAIRS.get(word, ()):
            inverse = (*own[:place], verb, *own[place + 1 :])
            for other in names:
                if words(other) == inverse:
                    return other
    for other in names if not has_lookup_verb(name) else ():  # set_blocked, unblock
        if other != name and _is_inverse(words(other), own):
            return other
    return None


def is_registration(name: str) -> bool:
    """Return True if a function may register, by its name alone."""
    own = words(name)
    return bool(own) and own[0] in REGISTRATION_VERBS


def has_lookup_verb(name: str) -> bool:
    """Return True if a function may only look, by its name."""
    return any(word in LOOKUP_VERBS for word in words(name)[:1] + words(name)[-1:])


def is_scope(name: str) -> bool:
    """Return True if a function may be a context manager, by its name."""
    return any(word in SCOPE_WORDS for word in words(name))


def _is_inverse(other: tuple[str, ...], own: tuple[str, ...]) -> bool:
    head = other[:1]
    if not head or not head[0].startswith("un") or len(head[0]) < 5:
        return False
    stem = head[0].removeprefix("un")
    return any(word != head[0] and word.startswith(stem) for word in own)


# The undo of a step: this text, the object that the step returned, or None.
RETURNED = "<returned>"
Undo: TypeAlias = str | None


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step: the text that does it, and its undo (text, `RETURNED`, or None)."""

    do: str
    undo: Undo
    remark: str = ""


@dataclass(frozen=True, slots=True)
class UseDraft:
    """A use; `unordered` if its answer follows the order of registration."""

    ask: str
    unordered: bool = False
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A scenario whose calls were tried.

    `own` is True if the target belongs to the project itself, `guessed` if the
    arguments of `create` were guessed; `lines` are the observed expressions; `remarks`
    are printed above the scenario.
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
