"""The custom classes that a schema may name.

True only here: which class names exist.  Names are only ever added, so a schema that
parsed once parses always, and parsed schemas may be kept by their text.
"""

from runtime.errors.schema import SchemaError

_NAMES: set[str] = set()


def register_class(qualname: str) -> None:
    """Let schemas name the class `namespace.Class`; registering it again is harmless.

    Raises:
        SchemaError: `qualname` is not two identifiers joined by one dot.
    """
    parts = qualname.split(".")
    if len(parts) != 2 or not all(p.isascii() and p.isidentifier() for p in parts):
        raise SchemaError(code="MalformedClassName", found=qualname)
    _NAMES.add(qualname)


def is_registered_class(qualname: str) -> bool:
    """Whether schemas may name this class."""
    return qualname in _NAMES
