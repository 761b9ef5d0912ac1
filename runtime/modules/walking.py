"""Walking: what a module and the modules within it have, by their paths.

True only here: in which order members come, and that each comes once.

Rules:
- a module comes before the modules within it, these in the order in which they were
  given, and members in the order of theirs;
- what several places share comes once, at the first of them, unless all are wanted;
- a path is the names that lead there, joined by dots.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.modules.module import Module

# Where the members of a kind lie.
PARAMETERS, BUFFERS, MODULES = "_parameters", "_buffers", "_modules"


def joined(prefix: str, name: str) -> str:
    """The path of a member of the module at `prefix`."""
    return f"{prefix}.{name}" if prefix else name


def modules_within(
    module: "Module", prefix: str = "", once: bool = True, known: set[int] | None = None
) -> Iterator[tuple[str, "Module"]]:
    """The module and all within it, with their paths."""
    known = set() if known is None else known
    if once:
        if id(module) in known:
            return
        known.add(id(module))
    yield prefix, module
    for name, each in module._modules.items():
        if each is not None:
            yield from modules_within(each, joined(prefix, name), once, known)


def members_within(
    module: "Module", kind: str, prefix: str, recurse: bool, once: bool
) -> Iterator[tuple[str, Any]]:
    """The parameters, or buffers, with their paths; those that are None do not come."""
    known: set[int] = set()
    everywhere = (
        modules_within(module, prefix, once) if recurse else iter([(prefix, module)])
    )
    for path, each in everywhere:
        for name, value in getattr(each, kind).items():
            if value is None or (once and id(value) in known):
                continue
            known.add(id(value))
            yield joined(path, name), value
