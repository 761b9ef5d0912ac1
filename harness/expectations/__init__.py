"""Expect files: what a scenario showed when somebody last accepted it."""

from harness.expectations.body import Body, Digest
from harness.expectations.compare import Comparison, accept, compare
from harness.expectations.difference import DiffClass, classes, explain, headline
from harness.expectations.document import Document, document_of
from harness.expectations.environment import forbidden
from harness.expectations.errors import (
    BadScenarioPath,
    CannotReadExpectFile,
    CannotWriteExpectFile,
    DamagedExpectFile,
    WritesForbidden,
)
from harness.expectations.journal import Journal, Reading, read_all
from harness.expectations.key import Key, key_of
from harness.expectations.parse import parse
from harness.expectations.render import render
from harness.expectations.store import Store

__all__ = [
    "BadScenarioPath",
    "Body",
    "CannotReadExpectFile",
    "CannotWriteExpectFile",
    "Comparison",
    "DamagedExpectFile",
    "DiffClass",
    "Digest",
    "Document",
    "Journal",
    "Key",
    "Reading",
    "Store",
    "WritesForbidden",
    "accept",
    "classes",
    "compare",
    "document_of",
    "explain",
    "forbidden",
    "headline",
    "key_of",
    "parse",
    "read_all",
    "render",
]
