"""Operator schemas: names, types, arguments, and the schema language."""

from everyorder.runtime.schema.annotation import (
    infer_named_schema,
    register_annotation,
)
from everyorder.runtime.schema.compatibility import (
    Incompatibility,
    SchemaDifference,
    backward_incompatibilities,
    difference,
    forward_incompatibilities,
)
from everyorder.runtime.schema.parser import (
    parse_name,
    parse_schema,
    parse_schema_or_name,
)
from everyorder.runtime.schema.schema import TAGS, Schema, check_definition, check_tags
from everyorder.runtime.schema.signature import (
    NO_DEFAULT,
    AliasInfo,
    AliasKind,
    Argument,
    OperatorName,
    parse_alias_kind,
)
from everyorder.runtime.schema.subtyping import is_subtype

__all__ = [
    "NO_DEFAULT",
    "TAGS",
    "AliasInfo",
    "AliasKind",
    "Argument",
    "Incompatibility",
    "OperatorName",
    "Schema",
    "SchemaDifference",
    "backward_incompatibilities",
    "check_definition",
    "check_tags",
    "difference",
    "forward_incompatibilities",
    "infer_named_schema",
    "is_subtype",
    "parse_alias_kind",
    "parse_name",
    "parse_schema",
    "parse_schema_or_name",
    "register_annotation",
]
