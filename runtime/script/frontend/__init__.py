"""The frontend of the compiler: programs as checked syntax trees, and facts of them."""

from runtime.script.frontend.absence import (
    Absence,
    absences,
    check_defined,
    not_defined,
)
from runtime.script.frontend.constructs import CONSTRUCTS, INNER, Construct
from runtime.script.frontend.language import (
    DEEPEST,
    DEEPEST_BLOCKS,
    Section,
    check,
    construct_of,
    place_of,
    reference,
    refusal,
    register_section,
    sections,
)
from runtime.script.frontend.restrictions import RESTRICTIONS, Restriction
from runtime.script.frontend.scopes import (
    JUMPS,
    Exit,
    Exits,
    Names,
    Scopes,
    Unreachable,
    constant,
    mangled,
    names,
    parameters,
)
from runtime.script.frontend.signature import (
    Annotations,
    FunctionSignature,
    read_signature,
    scope_of,
)
from runtime.script.frontend.source import (
    Definition,
    Row,
    read_class,
    read_function,
    read_text,
    rows,
    tree_text,
)
from runtime.script.plug_ins import ready

__all__ = [
    "CONSTRUCTS",
    "DEEPEST",
    "DEEPEST_BLOCKS",
    "INNER",
    "JUMPS",
    "RESTRICTIONS",
    "Absence",
    "Annotations",
    "Construct",
    "Definition",
    "Exit",
    "Exits",
    "FunctionSignature",
    "Names",
    "Restriction",
    "Row",
    "Scopes",
    "Section",
    "Unreachable",
    "absences",
    "check",
    "check_defined",
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
    "refusal",
    "register_section",
    "rows",
    "scope_of",
    "sections",
    "tree_text",
]

ready(__name__)
