"""Archives that nobody wrote: parts of ones that somebody did, put together again."""

import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import Any

import pytest

from everyorder.runtime.errors import ArchiveError
from everyorder.runtime.script.archive import container
from tests.script.archive.samples import Colour, Point, later, loaded, node, saved

SAMPLE = saved([later(), node(1, node(2)), Colour.RED, Point(1, 2.0), {"a": [1.5]}])


def members(data: bytes) -> dict[str, bytes]:
    """The members of an archive."""
    with zipfile.ZipFile(BytesIO(data)) as file:
        return {each: file.read(each) for each in file.namelist()}


def packed(contents: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of members, by nobody's rules."""
    buffer = BytesIO()
    with container.ArchiveWriter(buffer) as writer:
        for name, content in contents.items():
            if name.startswith("storages/"):
                writer.raw(name, memoryview(content))
            else:
                writer._zip.writestr(name, content, method)
    return buffer.getvalue()


def plainly(contents: dict[str, bytes]) -> bytes:
    """An archive in which nothing is aligned."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in contents.items():
            file.writestr(name, content)
    return buffer.getvalue()


def changed(data: bytes, member: str, change: Callable[[Any], Any]) -> bytes:
    """The archive with another table of JSON in it."""
    contents = members(data)
    table = json.loads(contents[member])
    result = change(table)
    table = table if result is None else result
    return packed(contents | {member: json.dumps(table).encode()})


def refusal(data: bytes) -> str:
    """What is wrong with an archive, in the words after the sentence begins."""
    with pytest.raises(ArchiveError) as raised:
        loaded(data)
    error: Any = raised.value
    return f"{error.code}: {error.fields().get('reason', error)}"


def refused_or_harmless(data: bytes) -> None:
    """Load what may be refused, by an error of archives."""
    with suppress(ArchiveError):
        loaded(data)
