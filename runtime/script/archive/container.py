"""Containers: the zip file of an archive, written reproducibly and read as untrusted.

This module handles bytes and members, without interpreting members.

Rules:
- the same members result in the same bytes: no time, no owner, members in the order of
  writing;
- texts are compressed, tensors are not: they begin at multiples of `ALIGNMENT`, by
  padding in the extra field, so that the file can be mapped;
- a file at a path is replaced atomically when the new one is complete; until then, and
  if writing fails, the old one stays;
- a reader trusts nothing: member names are unique and stay within the archive, sizes
  are within the limits and within the file, members do not overlap; checksums are
  verified for all bytes that are read, but not for tensors in a mapped file;
- truncating a file while it is mapped kills the process (SIGBUS on access after the end
  of the file): replace the file, as a writer does, or load from an open file, whose
  bytes are copied;
- every fault of a zip file raises `ArchiveError`.

The limits below bound the costs of a malicious archive: memory, time, depth of the
stack; all readers check them. The elements of tensors are not limited: they cannot
exceed the file.
"""

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from mmap import ACCESS_COPY, mmap
from typing import IO, Any, NoReturn, Self

from everyorder.runtime.errors.script import ArchiveError

# The version that is written, and the newest that is read.
VERSION = 1

# Members of the zip file; a program of 10,000 functions has as many.
MOST_MEMBERS = 50_000
# Bytes of the directory of the zip file, which is read as a whole.
DIRECTORY_BYTES = 16 << 20
# Characters of the name of a member, of a qualified name.
NAME_LENGTH = 512
# Bytes of one text, and of all texts, uncompressed.
TEXT_BYTES = 16 << 20
TEXTS_BYTES = 64 << 20
# Ratio of uncompressed to compressed bytes: deflate reaches 1,032, program texts stay
# below 40.
MOST_RATIO = 400
# Nesting of values in one text: tuples, attributes.
MOST_DEPTH = 64
# Declared types, functions, shared values, storages.
MOST_TYPES = 50_000
MOST_FUNCTIONS = 50_000
MOST_VALUES = 2_000_000
MOST_STORAGES = 200_000
# Dimensions of a tensor; tensors have the same limit.
MOST_DIMENSIONS = 64
# The alignment of the bytes of tensors: a cache line.
ALIGNMENT = 64

# A path, or an open file in binary mode.
Place = str | os.PathLike[str] | IO[bytes]
# The earliest time that a zip file can represent.
_TIME = (1980, 1, 1, 0, 0, 0)
# The padding is an extra field with an identifier that is not assigned.
_PADDING = 0x4545
_NAME = re.compile(r"[^\x00-\x1f\x7f\\:/]+(/[^\x00-\x1f\x7f\\:/]+)*")
# Python texts may contain lone surrogates, as constants.
_HALVES = "surrogatepass"
_LOCAL = struct.Struct("<4s22xHH")
_WRONG = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    OverflowError,
    EOFError,
    ValueError,
    IndexError,
    OSError,
)


class ArchiveWriter:
    """The writer of members."""

    __slots__ = ("_file", "_packed", "_zip")

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._packed = 0
        self._zip = zipfile.ZipFile(file, "w")

    def text(self, name: str, content: str | bytes) -> None:
        """Write a compressed member.

        Raises:
            ArchiveError: a reader would refuse the member.
        """
        data = (
            content if isinstance(content, bytes) else content.encode("utf-8", _HALVES)
        )
        self._packed += len(data)
        if len(data) > TEXT_BYTES or self._packed > TEXTS_BYTES:
            subject, limit = ("it has", TEXT_BYTES)
            if len(data) <= TEXT_BYTES:
                subject, limit = ("with it, all texts have", TEXTS_BYTES)
            reason = f"{subject} more than {limit} bytes"
            raise ArchiveError(
                code="NotSaveable", place=name, found="A text", reason=reason
            )
        if not is_member(name) or len(name) > NAME_LENGTH:
            reason = "its name leads out of the archive, or is too long"
            raise ArchiveError(
                code="NotSaveable",
                place=ascii(name[:80]),
                found="A member",
                reason=reason,
            )
        member = _member(name, zipfile.ZIP_DEFLATED)
        # A reader would refuse a ratio that is too high.
        if len(data) > 64 * len(zlib.compress(data, 1)):
            member.compress_type = zipfile.ZIP_STORED
        self._zip.writestr(member, data)

    def raw(self, name: str, data: memoryview) -> None:
        """Write an uncompressed member, its bytes at a multiple of `ALIGNMENT`."""
        member = _member(name, zipfile.ZIP_STORED)
        member.file_size = data.nbytes
        start = self._file.tell() + 30 + len(name.encode())
        # The header of a large member has a field of 20 more bytes.
        large = data.nbytes > zipfile.ZIP64_LIMIT
        start += 20 * large
        length = -(start + 4) % ALIGNMENT
        member.extra = struct.pack("<HH", _PADDING, length) + bytes(length)
        with self._zip.open(member, "w", force_zip64=large) as stream:
            step = 1 << 24
            for place in range(0, data.nbytes, step):
                stream.write(data[place : place + step])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Write the directory; `zipfile` would do so later, and to a closed file."""
        self._zip.close()


def is_member(name: str) -> bool:
    """Return True if a member of this name stays in the folder where it is unpacked."""
    parts = name.split("/")
    return bool(_NAME.fullmatch(name)) and not {".", ".."} & {*parts}


def _member(name: str, method: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _TIME)
    member.compress_type = method
    # Unix, a regular file, writable by its owner and readable by all.
    member.create_system, member.external_attr = 3, 0o100644 << 16
    return member


@contextmanager
def writing(place: Place) -> Iterator[ArchiveWriter]:
    """Yield a writer to a path or an open file; complete it on success."""
    if not isinstance(place, str | os.PathLike):
        # Offsets count from the beginning of the archive, not of the open file.
        buffer = BytesIO()
        with ArchiveWriter(buffer) as writer:
            yield writer
        place.write(buffer.getbuffer())
        return
    path = os.path.abspath(os.fspath(place))
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            with ArchiveWriter(file) as writer:
                yield writer
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.remove(temporary)
        raise


class ArchiveReader:
    """The reader of the members of an archive."""

    __slots__ = ("_bytes", "_members", "_unpacked", "_zip", "label")

    def __init__(self, data: Any, label: str) -> None:
        self._bytes = data
        self.label = label
        self._unpacked = 0
        try:
            _check_directory(data, label)
            self._zip = zipfile.ZipFile(_Bytes(data))
            members = self._zip.infolist()
        except _WRONG as error:
            raise ArchiveError(
                code="NotAnArchive", archive=label, reason=_words(error)
            ) from None
        if len(members) > MOST_MEMBERS:
            self.too_large("the number of members", len(members), MOST_MEMBERS)
        self._members: dict[str, zipfile.ZipInfo] = {}
        for each in members:
            self._check(each)
            self._members[each.filename] = each
        self._check_places()

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def names(self, folder: str) -> list[str]:
        """Return the names of the members of a folder, relative to it."""
        start = f"{folder}/"
        return [n.removeprefix(start) for n in self._members if n.startswith(start)]

    def _check(self, member: zipfile.ZipInfo) -> None:
        name = member.filename
        printable_name = ascii(name[:80])
        if len(name) > NAME_LENGTH:
            self.too_large("the length of a name", len(name), NAME_LENGTH)
        if not is_member(name):
            self.damaged(printable_name, "the name of the member leads elsewhere")
        if name in self._members:
            self.damaged(printable_name, "duplicate member")
        if member.flag_bits & 0x1:
            self.damaged(printable_name, "the member is encrypted")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            self.damaged(
                printable_name, "the member is packed in another way than by deflate"
            )
        end = member.header_offset + member.compress_size
        if member.header_offset < 0 or end > len(self._bytes):
            self.damaged(printable_name, "the member ends behind the file")

    def _check_places(self) -> None:
        """Refuse overlapping members: few bytes could become many large members."""
        end = 0
        for member in sorted(
            self._members.values(), key=lambda each: each.header_offset
        ):
            start = member.header_offset
            if start < end:
                self.damaged(ascii(member.filename[:80]), "another member lies over it")
            # A lower bound: the extra field of the header is not counted.
            header = _LOCAL.size + len(member.filename)
            end = start + header + member.compress_size

    def text(self, name: str) -> str:
        """Return a text; raises if the member is missing, or not UTF-8."""
        try:
            return self.unpacked(name).decode("utf-8", _HALVES)
        except UnicodeDecodeError:
            self.damaged(name, "the text is not UTF-8")

    def unpacked(self, name: str) -> bytes:
        """Return the bytes of a compressed member, verified by its checksum."""
        member = self.member(name)
        size = member.file_size
        if size > TEXT_BYTES:
            self.too_large(f"the size of {name}", size, TEXT_BYTES)
        if size > MOST_RATIO * max(member.compress_size, 1):
            ratio = size // max(member.compress_size, 1)
            self.too_large(f"the ratio of packing of {name}", ratio, MOST_RATIO)
        self._unpacked += size
        if self._unpacked > TEXTS_BYTES:
            self.too_large("the size of all texts", self._unpacked, TEXTS_BYTES)
        try:
            with self._zip.open(member) as stream:
                data = stream.read(size + 1)
        except _WRONG as error:
            self.damaged(name, _words(error))
        if len(data) != size:
            self.damaged(name, f"there are {len(data)} bytes of {size}")
        return data

    def raw(self, name: str) -> tuple[int, int]:
        """Return the offset and the number of the bytes of an uncompressed member."""
        member = self.member(name)
        if member.compress_type != zipfile.ZIP_STORED:
            self.damaged(name, "the bytes of a tensor are packed")
        if member.file_size != member.compress_size:
            self.damaged(name, "the member has two sizes")
        at = member.header_offset
        header = bytes(self._bytes[at : at + _LOCAL.size])
        if len(header) < _LOCAL.size:
            self.damaged(name, "the header of the member is cut")
        signature, name_length, extra_length = _LOCAL.unpack(header)
        start = at + _LOCAL.size + name_length + extra_length
        if signature != b"PK\x03\x04" or start + member.file_size > len(self._bytes):
            self.damaged(name, "the member ends behind the file")
        header_name = bytes(
            self._bytes[at + _LOCAL.size : at + _LOCAL.size + name_length]
        )
        if header_name != name.encode():
            self.damaged(name, "the member has another name in its header")
        if start % ALIGNMENT:
            self.damaged(name, f"the bytes do not begin at {ALIGNMENT}s")
        if not self.is_mapped:
            content = memoryview(self._bytes)[start : start + member.file_size]
            if zlib.crc32(content) != member.CRC:
                self.damaged(name, "the bytes are not those that were written")
        return start, member.file_size

    @property
    def is_mapped(self) -> bool:
        """Return True if bytes are read from a file when they are used."""
        return isinstance(self._bytes, mmap)

    def member(self, name: str) -> zipfile.ZipInfo:
        """Return the entry of a member in the directory."""
        entry = self._members.get(name)
        if entry is None:
            self.damaged(name, "the member is missing")
        return entry

    @property
    def data(self) -> Any:
        """Return all bytes, or a map of the file with copy-on-write pages."""
        return self._bytes

    def damaged(self, member: str, reason: str) -> NoReturn:
        """Raise the error that a member breaks a rule."""
        raise ArchiveError(
            code="DamagedArchive", archive=self.label, member=member, reason=reason
        )

    def too_large(self, what: str, number: int, limit: int) -> NoReturn:
        """Raise the error that a limit is exceeded."""
        raise ArchiveError(
            code="ArchiveTooLarge",
            archive=self.label,
            what=what,
            found=number,
            limit=limit,
        )


def reading(place: Place) -> ArchiveReader:
    """Return the archive at a path, or in the remaining part of an open file.

    A file at a path is mapped, not read.
    """
    if not isinstance(place, str | os.PathLike):
        return ArchiveReader(bytearray(place.read()), "in the buffer")
    label = os.fspath(place)
    with open(place, "rb") as file:
        try:
            mapped = mmap(file.fileno(), 0, access=ACCESS_COPY)
        except ValueError:
            raise ArchiveError(
                code="NotAnArchive", archive=label, reason="the file is empty"
            ) from None
    return ArchiveReader(mapped, label)


class _Bytes:
    """A file object on the bytes of another object, which copies only what is read."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: Any) -> None:
        self._data = data
        self._at = 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._at, len(self._data))[whence]
        if base + offset < 0:
            raise OSError("before the beginning of the file")
        self._at = base + offset
        return self._at

    def read(self, count: int | None = -1) -> bytes:
        end = len(self._data) if count is None or count < 0 else self._at + count
        chunk = bytes(self._data[self._at : end])
        self._at += len(chunk)
        return chunk

    def close(self) -> None:
        """Do nothing: the bytes belong to another object."""


def _check_directory(data: Any, label: str) -> None:
    """Refuse a zip directory that is too large; `zipfile` would read all of it."""
    tail = bytes(data[max(0, len(data) - 65_557) :])
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) < place + 22:
        raise zipfile.BadZipFile("there is no directory at its end")
    size = struct.unpack_from("<I", tail, place + 12)[0]
    locator = place - 20
    if locator >= 0 and tail[locator : locator + 4] == b"PK\x06\x07":
        (at,) = struct.unpack_from("<Q", tail, locator + 8)
        record = bytes(data[at : at + 56]) if at < len(data) else b""
        if len(record) == 56:
            size = struct.unpack_from("<Q", record, 40)[0]
    if size > DIRECTORY_BYTES:
        what = "the size of its directory"
        raise ArchiveError(
            code="ArchiveTooLarge",
            archive=label,
            what=what,
            found=size,
            limit=DIRECTORY_BYTES,
        )


def _words(error: Exception) -> str:
    words = str(error).rstrip(".") or type(error).__name__
    return words if words.isprintable() else ascii(words)
