"""Text: how remote calls stand in the text of programs, and what its words mean.

Each kind of `runtime.rpc.program.kinds` has a form in `.code`, which the compiler reads
back:

    rpc_async(to, __torch__.two, (x,), {'y': 1}, 5.)     the function is known
    rpc_async_by_name(to, name, (x,))                    it is not
    rref.to_here()
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runtime.rpc.program.kinds import ASYNC, METHODS, NAME, REMOTE, SYNC
from runtime.rpc.program.plug_in import Surface
from runtime.schema.types import AnyType
from runtime.script.archive import Constants, register_form, register_word
from runtime.script.archive.expressions import (
    bare,
    closed,
    function_name,
    joined,
    type_text,
)
from runtime.script.ir import Node

Form = Callable[[Node, Sequence[str], Constants], str]
Remove = Callable[[], None]

_WORDS = {ASYNC: "rpc_async", SYNC: "rpc_sync", REMOTE: "rpc_remote"}


def _call(node: Node, operands: Sequence[str], constants: Constants) -> str:
    word, texts = _WORDS[node.kind], [*operands]
    function = node.attributes.get("function")
    if function is not None:
        texts[NAME] = function_name(function, constants)
        return f"{word}({joined(texts)})"
    text = f"{word}_by_name({joined(texts)})"
    own = node.output.type
    if own is AnyType or getattr(own, "element", None) is AnyType:
        return text
    return f"unchecked_cast({type_text(own)}, {text})"


def _method(name: str) -> Form:
    def form(node: Node, operands: Sequence[str], constants: Constants) -> str:
        rref, *rest = operands
        return f"{closed(rref)}.{name}({joined(rest)})"

    return form


def _worker(node: Node, operands: Sequence[str], constants: Constants) -> str:
    return f"{closed(bare(operands[0]))}.{node.attributes['name']}"


_FORMS: Mapping[str, Form] = {
    **dict.fromkeys(_WORDS, _call),
    "prim::worker_info": _worker,
    **{f"prim::rref_{name}": _method(name) for name in METHODS},
}


def installed(surface: Surface) -> Iterable[Remove]:
    """Let texts have remote calls; gives what takes that back."""
    for kind, form in _FORMS.items():
        yield register_form(kind, form)
    words: Mapping[str, Any] = {
        "rpc_async": surface.rpc_async,
        "rpc_sync": surface.rpc_sync,
        "rpc_remote": surface.remote,
        "rpc_async_by_name": surface.async_by_name,
        "rpc_sync_by_name": surface.sync_by_name,
        "rpc_remote_by_name": surface.remote_by_name,
        "RRef": surface.rref,
    }
    for word, python in words.items():
        yield register_word(word, python)
