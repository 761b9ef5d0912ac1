"""Unsendable parts: where in a value the part is that cannot be pickled.

It asks of each part whether that alone is refused, and goes on into the first that is.

Rules: a search is for an error only, and ends after so many questions; then the path is
that of the smallest part found.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from runtime.errors.rpc import Unsendable
from runtime.schema.excerpt import described, shortened

# A question is a pickle of a part: enough for what people write by hand.
_MOST_QUESTIONS = 2000
_DEEPEST = 50
# Keys, and what pickle says, in a text of 80 columns.
_KEY_WIDTH = 30
_REASON_WIDTH = 300


def unsendable(
    value: Any,
    root: Sequence[str] | str,
    is_refused: Callable[[Any], bool],
    reason: BaseException,
) -> Unsendable:
    """The error that a part of a value is refused."""
    path, part = root if isinstance(root, str) else "", value
    if not isinstance(root, str):
        for name, each in zip(root, value, strict=False):
            if is_refused(each):
                path, part = name, each
                break
    left = _MOST_QUESTIONS
    for _ in range(_DEEPEST):
        for step, inner in _parts(part):
            left -= 1
            if left < 0:
                break
            if inner is not part and is_refused(inner):
                path, part = path + step, inner
                break
        else:
            break
        if left < 0:
            break
    return Unsendable(
        path=path or "value", found=_named(part), reason=_reason(reason, part)
    )


def _named(part: Any) -> str:
    name = getattr(part, "__qualname__", None)
    if isinstance(name, str) and callable(part):
        return f"`{name}`"
    kind = type(part)
    if kind.__module__ == "builtins":
        return described(part)
    return f"an object of `{kind.__module__}.{kind.__qualname__}`"


def _reason(error: BaseException, part: Any) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # the text of somebody's error
        text = "it has no text"
    return shortened_text(f"{type(error).__name__}: {text}", _REASON_WIDTH)


def shortened_text(text: str, width: int) -> str:
    """A text, cut to a width."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a value, each with what leads to it."""
    if isinstance(value, list | tuple):
        for place, each in enumerate(value):
            yield f"[{place}]", each
    elif isinstance(value, dict):
        for key, each in value.items():
            shown = shortened(key, _KEY_WIDTH)
            yield f"[{shown}]", each
            yield f".keys() ({shown})", key
    elif isinstance(value, set | frozenset):
        for each in value:
            yield f".pop() ({shortened(each, _KEY_WIDTH)})", each
    elif isinstance(value, partial):
        yield ".func", value.func
        yield from ((f".args{step}", each) for step, each in _parts(value.args))
        yield from ((f".keywords{step}", each) for step, each in _parts(value.keywords))
    else:
        yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    owner = getattr(value, "__self__", None)
    if owner is not None and not isinstance(owner, type):
        yield ".__self__", owner
    cells = getattr(value, "__closure__", None) or ()
    code = getattr(value, "__code__", None)
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=False):
        try:
            yield f".<locals>.{name}", cell.cell_contents
        except ValueError:  # nothing is in it
            continue
    if isinstance(value, type):
        return
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, Mapping):
        yield from ((f".{name}", each) for name, each in [*attributes.items()])
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield f".{name}", getattr(value, name)
