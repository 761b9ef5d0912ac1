"""Operator schemas: names, types, arguments, and the language they are written in."""

from runtime.schema.alias import AliasInfo, AliasKind, parse_alias_kind
from runtime.schema.argument import NO_DEFAULT, Argument
from runtime.schema.compatibility import (
    Incompatibility,
    backward_incompatibilities,
    forward_incompatibilities,
)
from runtime.schema.definition import check_definition
from runtime.schema.difference import Difference, difference
from runtime.schema.infer import (
    infer_named_schema,
    infer_schema_of,
    register_annotation,
)
from runtime.schema.names import OperatorName
from runtime.schema.parser import parse_name, parse_schema, parse_schema_or_name
from runtime.schema.schema import Schema
from runtime.schema.subtype import is_subtype
from runtime.schema.tags import TAGS, check_tags

__all__ = [
    "NO_DEFAULT",
    "TAGS",
    "AliasInfo",
    "AliasKind",
    "Argument",
    "Difference",
    "Incompatibility",
    "OperatorName",
    "Schema",
    "backward_incompatibilities",
    "check_definition",
    "check_tags",
    "difference",
    "forward_incompatibilities",
    "infer_named_schema",
    "infer_schema_of",
    "is_subtype",
    "parse_alias_kind",
    "parse_name",
    "parse_schema",
    "parse_schema_or_name",
    "register_annotation",
]
