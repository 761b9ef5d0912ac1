"""Archives: compiled programs as text, and files that are read as untrusted input."""

from everyorder.runtime.base.hooks import ready
from everyorder.runtime.script.archive.code import code_of, graph_code, type_code
from everyorder.runtime.script.archive.container import VERSION
from everyorder.runtime.script.archive.loading import load
from everyorder.runtime.script.archive.saving import save
from everyorder.runtime.script.archive.spelling import (
    Constants,
    register_form,
    register_word,
)

__all__ = [
    "VERSION",
    "Constants",
    "code_of",
    "graph_code",
    "load",
    "register_form",
    "register_word",
    "save",
    "type_code",
]

ready(__name__)
