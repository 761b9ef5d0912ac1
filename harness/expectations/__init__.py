"""Expect files: the observations of a scenario that a user has accepted."""

from everyorder.harness.expectations.compare import (
    Comparison,
    DiffClass,
    accept,
    classes,
    compare,
    explain,
    headline,
)
from everyorder.harness.expectations.document import (
    FORMAT,
    Body,
    Digest,
    Document,
    Key,
    document_of,
    key_of,
)
from everyorder.harness.expectations.edits import Edit, edits_of
from everyorder.harness.expectations.file_format import parse, render
from everyorder.harness.expectations.inline import (
    InlineEdit,
    edit_of,
    inline_text,
    with_sharing,
)
from everyorder.harness.expectations.journal import Journal, Reading, read_all
from everyorder.harness.expectations.store import FOLDER, Store, forbidden

__all__ = [
    "FOLDER",
    "FORMAT",
    "Body",
    "Comparison",
    "DiffClass",
    "Digest",
    "Document",
    "Edit",
    "InlineEdit",
    "Journal",
    "Key",
    "Reading",
    "Store",
    "accept",
    "classes",
    "compare",
    "document_of",
    "edit_of",
    "edits_of",
    "explain",
    "forbidden",
    "headline",
    "inline_text",
    "key_of",
    "parse",
    "read_all",
    "render",
    "with_sharing",
]
