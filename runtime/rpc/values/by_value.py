"""By value: the code of functions and classes that no module has, by cloudpickle.

True only here: what of cloudpickle's is used.  It is loaded when something is first
written by value; who only reads needs it as well, as its functions are named there.

Rules: files are no values: cloudpickle would send what they hold.
"""

import io
import logging
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle

_PROTOCOL = 5
# What cloudpickle sends, and what nobody wants to be sent.
_NOT_SENT = (io.TextIOWrapper, logging.Logger, logging.RootLogger)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Cloudpickle's, with a table that goes before its own."""

    def __init__(
        self, file: io.BytesIO, beside: Callable[[Any], bool], table: Mapping[type, Any]
    ) -> None:
        super().__init__(file, protocol=_PROTOCOL, buffer_callback=beside)
        own = cloudpickle.Pickler._dispatch_table
        kept = {kind: each for kind, each in own.items() if kind not in _NOT_SENT}
        self.dispatch_table = ChainMap(table, kept)  # type: ignore[arg-type]  # read only


def pickler(
    file: io.BytesIO, beside: Callable[[Any], bool], table: Mapping[type, Any]
) -> Any:
    """What writes to a file, asks `beside` of buffers, and reduces by a table first."""
    return _Pickler(file, beside, table)
