"""The frontend of the compiler: checked syntax trees of programs and their analyses."""

from everyorder.runtime.base.hooks import ready
from everyorder.runtime.script.frontend.language import (
    CONSTRUCTS,
    DEEPEST,
    DEEPEST_BLOCKS,
    INNER,
    Section,
    check,
    construct_of,
    place_of,
    reference,
    register_section,
    sections,
)
from everyorder.runtime.script.frontend.restrictions import RESTRICTIONS, Construct
from everyorder.runtime.script.frontend.scopes import (
    JUMPS,
    Exit,
    Exits,
    Scopes,
    absences,
    constant,
    mangled,
    names,
    not_defined,
    parameters,
)
from everyorder.runtime.script.frontend.signature import (
    Annotations,
    FunctionSignature,
    read_signature,
    scope_of,
    scope_of_class,
)
from everyorder.runtime.script.frontend.source import (
    SourceDefinition,
    read_class,
    read_function,
    read_text,
)

__all__ = [
    "CONSTRUCTS",
    "DEEPEST",
    "DEEPEST_BLOCKS",
    "INNER",
    "JUMPS",
    "RESTRICTIONS",
    "Annotations",
    "Construct",
    "Exit",
    "Exits",
    "FunctionSignature",
    "Scopes",
    "Section",
    "SourceDefinition",
    "absences",
    "check",
    "constant",
    "construct_of",
    "mangled",
    "names",
    "not_defined",
    "parameters",
    "place_of",
    "read_class",
    "read_function",
    "read_signature",
    "read_text",
    "reference",
    "register_section",
    "scope_of",
    "scope_of_class",
    "sections",
]

ready(__name__)
