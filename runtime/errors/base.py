"""The base of every error that the runtime raises.

True only here: an error is data.  A leaf class is a keyword-only dataclass whose
fields hold what happened; words exist only in `render`.  The harness compares
`fields()`, people read `str()`, and pickling goes by the fields, so that an error
crosses a process without loss.

Rules:
- a leaf is declared `@dataclass(eq=False, kw_only=True)` and defines `render`;
- a field never holds a live kernel, tensor, lock or dispatcher: text and numbers
  only, so that an exception kept by somebody keeps nothing else alive;
- a leaf may add a builtin base (`ValueError`, `NotImplementedError`) where callers
  of such functions expect one.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any


class EveryorderError(Exception):
    """Base of all errors of `runtime`; its fields say what happened."""

    def render(self) -> str:
        """The whole text shown to a person; every leaf defines it."""
        raise NotImplementedError(f"{type(self).__name__} does not say what happened")

    def fields(self) -> dict[str, Any]:
        """The fields by name, in declaration order."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]  # every leaf is a dataclass

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
        notes = getattr(self, "__notes__", None)
        kept = {"__notes__": notes} if notes else None
        return _rebuild, (type(self), self.fields()), kept


def _rebuild(kind: type[EveryorderError], values: dict[str, Any]) -> EveryorderError:
    return kind(**values)


def nearest(name: str, candidates: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """At most three candidates close to `name`, closest first (difflib's ratio)."""
    from difflib import get_close_matches

    return tuple(get_close_matches(name, candidates, n=3, cutoff=0.6))
