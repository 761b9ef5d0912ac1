"""The restricted codec: values as bytes, read by a decoder that can run no code.

    pack, read    values of the classes in the table, and back
    unsendable    the error that names the refused part of a value; for both codecs

A row of the table is a tag, a class, an encoder and a decoder; a value of any other
class, subclasses included, is refused where it is written.  The decoder imports
nothing, looks nothing up by name, and calls nothing outside of this file, but for
references and tensors, which check what they are given.

Rules:
- an element takes a byte or more, so a count is never larger than the rest of the
  message: a decoded value takes a bounded multiple of the memory of the message;
- the nesting of containers is limited, in writing and in reading;
- keys of dictionaries are plain values, whose hashes nobody can make collide at will;
- a value has one form: a value that was read is written as the same bytes; a container
  that occurs twice arrives as two.

`unsendable` tests each part of a value alone, and descends into the first one that is
refused.  It is used for an error only, and stops after a number of tests: then the path
is that of the smallest part found.
"""

import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from everyorder.runtime.base.locks import load
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.errors.rpc import Undecodable, Unsendable
from everyorder.runtime.rpc.codec.payload import (
    NO_REFERENCES,
    RESTRICTED,
    Packed,
    PayloadReader,
    PayloadWriter,
    ReferenceCodec,
    SilentReferences,
)
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from everyorder.runtime.schema.call_errors import describe_value, shortened
from everyorder.runtime.schema.enums import Device, DType, Layout, MemoryFormat
from everyorder.runtime.tensors.keys import HANDLED, inference_keys_of, keys_of
from everyorder.runtime.tensors.storage import Storage
from everyorder.runtime.tensors.tensor import Tensor

# Tests of a part, each a pickle: enough for values that people write by hand.
_MOST_TESTS = 2000
_DEEPEST = 50
# The widths of keys and of pickle's message in the error.
_KEY_WIDTH = 30
_REASON_WIDTH = 300


def unsendable(
    value: Any,
    root: Sequence[str] | str,
    is_refused: Callable[[Any], bool],
    reason: BaseException,
) -> Unsendable:
    """The error that a part of a value is refused."""
    path, part = root if isinstance(root, str) else "", value
    if not isinstance(root, str):
        for name, each in zip(root, value, strict=False):
            if is_refused(each):
                path, part = name, each
                break
    left = _MOST_TESTS
    for _ in range(_DEEPEST):
        for step, inner in _parts(part):
            left -= 1
            if left < 0:
                break
            if inner is not part and is_refused(inner):
                path, part = path + step, inner
                break
        else:
            break
        if left < 0:
            break
    return Unsendable(
        path=path or "value", found=_named(part), reason=_reason(reason, part)
    )


def _named(part: Any) -> str:
    name = getattr(part, "__qualname__", None)
    if isinstance(name, str) and callable(part):
        return f"`{name}`"
    kind = type(part)
    if kind.__module__ == "builtins":
        return describe_value(part)
    return f"an object of `{kind.__module__}.{kind.__qualname__}`"


def _reason(error: BaseException, part: Any) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # the text of somebody's error
        text = "it has no text"
    return shortened_text(f"{code_of(error)}: {text}", _REASON_WIDTH)


def shortened_text(text: str, width: int) -> str:
    """A text, cut to a width."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a value, each with what leads to it."""
    if isinstance(value, list | tuple):
        for place, each in enumerate(value):
            yield f"[{place}]", each
    elif isinstance(value, dict):
        for key, each in value.items():
            shown = shortened(key, _KEY_WIDTH)
            yield f"[{shown}]", each
            yield f".keys() ({shown})", key
    elif isinstance(value, set | frozenset):
        for each in value:
            yield f".pop() ({shortened(each, _KEY_WIDTH)})", each
    elif isinstance(value, partial):
        yield ".func", value.func
        yield from ((f".args{step}", each) for step, each in _parts(value.args))
        yield from ((f".keywords{step}", each) for step, each in _parts(value.keywords))
    else:
        yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    owner = getattr(value, "__self__", None)
    if owner is not None and not isinstance(owner, type):
        yield ".__self__", owner
    cells = getattr(value, "__closure__", None) or ()
    code = getattr(value, "__code__", None)
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=False):
        try:
            yield f".<locals>.{name}", cell.cell_contents
        except ValueError:  # nothing is in it
            continue
    if isinstance(value, type):
        return
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, Mapping):
        yield from ((f".{name}", each) for name, each in [*attributes.items()])
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield f".{name}", getattr(value, name)


# Containers within containers; source: what the schema reads of types.
DEEPEST = 100

# A length of up to this many bytes: more than any memory has.
_LONGEST_COUNT = 9

_DOUBLE = struct.Struct("<d")
_COMPLEX = struct.Struct("<dd")
_SMALL_INT = struct.Struct("<q")


class CodecRow(NamedTuple):
    """A class of the table: its tag, encoder and decoder."""

    tag: int
    kind: type
    encode: "Callable[[_RestrictedWriter, Any], None]"
    decode: "Callable[[_Reader], Any]"


class _RestrictedWriter:
    """The bytes so far, and the depth of open containers."""

    __slots__ = ("depth", "message", "out")

    def __init__(self, message: PayloadWriter) -> None:
        self.out = bytearray()
        self.message = message
        self.depth = 0

    def value(self, value: Any) -> None:
        """Write a value with its tag."""
        row = _BY_CLASS.get(type(value))
        if row is None:
            row = self._rare(value)
        self.out.append(row.tag)
        row.encode(self, value)

    def _rare(self, value: Any) -> CodecRow:
        if isinstance(value, self.message.references.kinds):
            return _REFERENCE
        modules: Any = sys.modules.get("everyorder.runtime.nn.members")
        # Without this module loaded there is no parameter.
        if modules is None or type(value) is not modules.Parameter:
            raise _Refused(value, "its class has no place in the restricted codec")
        return _PARAMETER

    def count(self, count: int) -> None:
        """Write a number from 0 on, in groups of seven bits."""
        while count > 0x7F:
            self.out.append(count & 0x7F | 0x80)
            count >>= 7
        self.out.append(count)

    def raw(self, data: Any) -> None:
        """Write bytes, their number first."""
        self.count(len(data))
        self.out += data

    def inside(self, values: Sequence[Any]) -> None:
        """Write elements, their number first."""
        self.count(len(values))
        self.depth += 1
        if self.depth > DEEPEST:
            raise _Refused(values, f"it is nested more than {DEEPEST} deep")
        for each in values:
            self.value(each)
        self.depth -= 1


class _Refused(Exception):
    """A value has no row."""

    def __init__(self, value: Any, reason: str) -> None:
        super().__init__(value, reason)
        self.value = value
        self.reason = reason


class _Reader:
    """The bytes, the position in them, and the depth of open containers."""

    __slots__ = ("at", "data", "depth", "end", "message")

    def __init__(self, message: PayloadReader) -> None:
        self.data = bytes(message.body)
        self.end = len(self.data)
        self.at = 0
        self.depth = 0
        self.message = message

    def value(self) -> Any:
        """A value after its tag."""
        tag = self.byte()
        if tag >= len(_DECODERS):
            raise _damaged(f"there is no tag {tag}")
        return _DECODERS[tag](self)

    def byte(self) -> int:
        """The next byte."""
        at = self.at
        if at >= self.end:
            raise _damaged("it is cut")
        self.at = at + 1
        return self.data[at]

    def count(self) -> int:
        """A number from 0 on, in its shortest form."""
        byte = self.byte()
        if byte < 0x80:
            return byte
        found, shift = byte & 0x7F, 7
        for _ in range(_LONGEST_COUNT):
            byte = self.byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                if not byte:
                    raise _damaged("a number is longer than it needs")
                return found
            shift += 7
        raise _damaged("a number has no end")

    def raw(self) -> bytes:
        """Bytes after their number."""
        return self.take(self.count())

    def take(self, count: int) -> bytes:
        """So many bytes."""
        at = self.at
        end = at + count
        if end > self.end:
            raise _damaged("it is cut")
        self.at = end
        return self.data[at:end]

    def elements(self) -> int:
        """The number of elements, each of a byte or more; one container deeper."""
        count = self.count()
        if count > self.end - self.at:
            raise _damaged("it counts more than it holds")
        self.depth += 1
        if self.depth > DEEPEST:
            raise _damaged(f"it is nested more than {DEEPEST} deep")
        return count

    def inside(self) -> list[Any]:
        """Elements after their number."""
        found = [self.value() for _ in range(self.elements())]
        self.depth -= 1
        return found


def _nothing(writer: _RestrictedWriter, value: Any) -> None:
    """Nothing follows the tag."""


def _encode_bool(writer: _RestrictedWriter, value: bool) -> None:
    writer.out.append(value)


def _decode_bool(reader: _Reader) -> bool:
    byte = reader.byte()
    if byte > 1:
        raise _damaged(f"{byte} is neither true nor false")
    return byte == 1


def _encode_int(writer: _RestrictedWriter, value: int) -> None:
    size = (value.bit_length() + 8) // 8
    writer.raw(value.to_bytes(size, "little", signed=True))


def _decode_int(reader: _Reader) -> int:
    data = reader.raw()
    value = int.from_bytes(data, "little", signed=True)
    if len(data) != (value.bit_length() + 8) // 8:
        raise _damaged("an integer is longer than it needs")
    return value


def _encode_float(writer: _RestrictedWriter, value: float) -> None:
    writer.out += _DOUBLE.pack(value)


def _decode_float(reader: _Reader) -> float:
    value: float = _DOUBLE.unpack(reader.take(8))[0]
    return value


def _encode_complex(writer: _RestrictedWriter, value: complex) -> None:
    writer.out += _COMPLEX.pack(value.real, value.imag)


def _decode_complex(reader: _Reader) -> complex:
    return complex(*_COMPLEX.unpack(reader.take(16)))


def _encode_str(writer: _RestrictedWriter, value: str) -> None:
    # Python has texts that are no Unicode, as names of files.
    writer.raw(value.encode("utf-8", "surrogatepass"))


def _decode_str(reader: _Reader) -> str:
    try:
        return reader.raw().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise _damaged("a text is none") from error


def _encode_dict(writer: _RestrictedWriter, value: dict[Any, Any]) -> None:
    writer.count(len(value))
    writer.depth += 1
    if writer.depth > DEEPEST:
        raise _Refused(value, f"it is nested more than {DEEPEST} deep")
    for key, each in value.items():
        if type(key) not in _KEYS or (type(key) is int and not _fits(key)):
            raise _Refused(
                value, f"{describe_value(key)} is no key in the restricted codec"
            )
        writer.value(key)
        writer.value(each)
    writer.depth -= 1


def _decode_dict(reader: _Reader) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    count = reader.elements()
    for _ in range(count):
        key = reader.value()
        if type(key) not in _KEYS or (type(key) is int and not _fits(key)):
            raise _damaged(f"{describe_value(key)} is no key")
        found[key] = reader.value()
    if len(found) != count:
        raise _damaged("a key is there twice")
    reader.depth -= 1
    return found


# Classes of keys of which nobody can make many with one hash.
_KEYS = frozenset({type(None), bool, int, float, str, bytes})


def _fits(value: int) -> bool:
    return -(1 << 63) <= value < 1 << 63


def _encode_code(writer: _RestrictedWriter, value: Any) -> None:
    writer.out.append(value.code)


def _decoder_of(kind: type[DType | Layout | MemoryFormat]) -> Callable[[_Reader], Any]:
    def decode(reader: _Reader) -> Any:
        code = reader.byte()
        if not kind.is_code(code):
            raise _damaged(f"{kind.__name__} has no number {code}")
        return kind(code)

    return decode


def _encode_device(writer: _RestrictedWriter, value: Device) -> None:
    writer.raw(str(value).encode())


def _decode_device(reader: _Reader) -> Device:
    try:
        return Device.parse(reader.raw().decode("ascii"))
    except Exception as error:
        raise _damaged("there is no such device") from error


def _encode_worker(writer: _RestrictedWriter, value: WorkerInfo) -> None:
    _encode_str(writer, value.name)
    writer.out += _SMALL_INT.pack(value.id)


def _decode_worker(reader: _Reader) -> WorkerInfo:
    name = _decode_str(reader)
    return WorkerInfo(name, _SMALL_INT.unpack(reader.take(8))[0])


def _encode_tensor(writer: _RestrictedWriter, value: Tensor) -> None:
    bits, device = value.key_bits & ~HANDLED, value._device.type
    # One of inference mode arrives as one of the mode that its reader is in.
    plain = bits in (keys_of(device).bits, inference_keys_of(device).bits)
    if not plain or value.number is not None:
        raise _Refused(value, "its keys are not those of a plain tensor")
    if type(value.storage()) is not Storage:
        raise _Refused(value, "it has no elements")
    writer.count(writer.message.tensors.view(value))
    writer.out.append(value._requires_grad)


def _decode_tensor(reader: _Reader) -> Tensor:
    place, requires_grad = reader.count(), _decode_bool(reader)
    return reader.message.tensors.plain(Tensor, place, requires_grad)


def _decode_parameter(reader: _Reader) -> Tensor:
    kind: type[Tensor] = load("everyorder.runtime.nn.members").Parameter
    place, requires_grad = reader.count(), _decode_bool(reader)
    return reader.message.tensors.plain(kind, place, requires_grad)


def _encode_reference(writer: _RestrictedWriter, value: Any) -> None:
    writer.count(writer.message.add_reference(value))


def _decode_reference(reader: _Reader) -> Any:
    return reader.message.reference(reader.count())


class _Parameter:
    """Stands for `runtime.Parameter` in the table."""


# The table.  A tag is the place of its row, and no row ever moves.
_ROWS: tuple[tuple[type, Any, Any], ...] = (
    (type(None), _nothing, lambda reader: None),
    (bool, _encode_bool, _decode_bool),
    (int, _encode_int, _decode_int),
    (float, _encode_float, _decode_float),
    (complex, _encode_complex, _decode_complex),
    (str, _encode_str, _decode_str),
    (bytes, _RestrictedWriter.raw, _Reader.raw),
    (bytearray, _RestrictedWriter.raw, lambda reader: bytearray(reader.raw())),
    (list, _RestrictedWriter.inside, _Reader.inside),
    (tuple, _RestrictedWriter.inside, lambda reader: tuple(reader.inside())),
    (dict, _encode_dict, _decode_dict),
    (Tensor, _encode_tensor, _decode_tensor),
    # A class of a higher area, which is recognised when it is loaded.
    (_Parameter, _encode_tensor, _decode_parameter),
    (Device, _encode_device, _decode_device),
    (DType, _encode_code, _decoder_of(DType)),
    (Layout, _encode_code, _decoder_of(Layout)),
    (MemoryFormat, _encode_code, _decoder_of(MemoryFormat)),
    (WorkerInfo, _encode_worker, _decode_worker),
    # References of the classes in `References.kinds`.
    (ReferenceCodec, _encode_reference, _decode_reference),
)
ROWS = tuple(CodecRow(tag, *each) for tag, each in enumerate(_ROWS))
_DECODERS = tuple(row.decode for row in ROWS)
_BY_CLASS = {row.kind: row for row in ROWS}
_REFERENCE = _BY_CLASS.pop(ReferenceCodec)
_PARAMETER = _BY_CLASS.pop(_Parameter)


def fits(value: Any, references: ReferenceCodec = NO_REFERENCES) -> bool:
    """Whether the codec writes a value: all of its parts, no reference asked."""
    try:
        _RestrictedWriter(PayloadWriter(SilentReferences(references.kinds))).value(
            value
        )
    except _Refused:
        return False
    return True


def pack(
    value: Any,
    references: ReferenceCodec = NO_REFERENCES,
    root: Sequence[str] | str = "",
) -> Packed:
    """A value as a payload; `root` as for `pickling.pack`.

    Raises:
        Unsendable: a part of it has no row in the table; says which.
        RpcError: a reference refuses to be sent.
    """
    try:
        return _written(value, references)
    except _Refused as refused:
        error = TypeError(refused.reason)
        raise unsendable(
            value, root, lambda part: not fits(part, references), error
        ) from None


def try_pack(value: Any, references: ReferenceCodec = NO_REFERENCES) -> Packed | None:
    """As `pack`, but None for a value that has no place in the codec."""
    try:
        return _written(value, references)
    except _Refused:
        return None


def _written(value: Any, references: ReferenceCodec) -> Packed:
    message = PayloadWriter(references)
    writer = _RestrictedWriter(message)
    writer.value(value)
    end, frames = message.tail(RESTRICTED)
    writer.out += end
    return Packed([bytes(writer.out), *frames], message.carries)


def read(message: PayloadReader) -> Any:
    """The value of a message.

    Raises:
        Undecodable: it is none that `pack` wrote.
        RpcError: a reference or a tensor cannot be had here.
    """
    reader = _Reader(message)
    value = reader.value()
    if reader.at != reader.end:
        raise _damaged("more follows than it says")
    return value


def _damaged(reason: str) -> Undecodable:
    return Undecodable(found="A value", reason=reason)
