"""The restricted codec: values as bytes, for a decoder that does not run code.

    pack, read    values of the classes in the table, and back
    unsendable    the error that names the refused part of a value; for both codecs

A row of the table is a tag, a class, an encoder and a decoder; a value of any other
class, subclasses included, is refused by the encoder.  The decoder does not import
modules or look up names, and calls only functions of this file, except for references
and tensors, which check their arguments.

Rules:
- an element needs a byte or more, so a count is never larger than the rest of the
  message: a decoded value needs a bounded multiple of the memory of the message;
- the nesting of containers is limited, in writing and in reading;
- keys of dictionaries are plain values, whose hashes cannot be made to collide at will;
- a value has one encoding: a decoded value is encoded as the same bytes; a container
  that occurs twice is decoded as two containers.

`unsendable` tests each part of a value separately, and descends into the first refused
one.  It is used for an error only, and stops after a number of tests: the path is then
that of the smallest refused part so far.
"""

import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from everyorder.runtime.base.locks import load
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.errors.rpc import RpcMisuse, Undecodable, Unsendable
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

# Limit for the tests of parts, each a pickle: enough for hand-written values.
_MOST_TESTS = 2000
_DEEPEST = 50
# In characters: the widths of keys and of pickle's message in the error.
_KEY_WIDTH = 30
_REASON_WIDTH = 300


def unsendable(
    value: Any,
    root: Sequence[str] | str,
    is_refused: Callable[[Any], bool],
    reason: BaseException,
) -> Unsendable:
    """Return the error for a value with a refused part."""
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
    except Exception:  # `__str__` of a user's exception
        text = "it has no text"
    return shortened_text(f"{code_of(error)}: {text}", _REASON_WIDTH)


def shortened_text(text: str, width: int) -> str:
    """Return a text, cut to a width in characters."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a value, each with the path step that leads to it."""
    if isinstance(value, list | tuple):
        for place, each in enumerate(value):
            yield f"[{place}]", each
    elif isinstance(value, dict):
        for key, each in value.items():
            label = shortened(key, _KEY_WIDTH)
            yield f"[{label}]", each
            yield f".keys() ({label})", key
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
        except ValueError:  # an empty cell
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


# Levels of nested containers; the schema language limits nested types alike.
DEEPEST = 100

# Bytes of an encoded length: more than any memory has.
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
        # Parameters exist only if this module is loaded.
        if modules is None or type(value) is not modules.Parameter:
            raise _Refused(value, "the restricted codec does not support its class")
        return _PARAMETER

    def count(self, count: int) -> None:
        """Write a number >= 0, in groups of seven bits."""
        while count > 0x7F:
            self.out.append(count & 0x7F | 0x80)
            count >>= 7
        self.out.append(count)

    def raw(self, data: Any) -> None:
        """Write bytes, preceded by their number."""
        self.count(len(data))
        self.out += data

    def inside(self, values: Sequence[Any]) -> None:
        """Write elements, preceded by their number."""
        self.count(len(values))
        self.depth += 1
        if self.depth > DEEPEST:
            raise _Refused(values, f"it is nested more than {DEEPEST} deep")
        for each in values:
            self.value(each)
        self.depth -= 1


class _Refused(Exception):
    """A value cannot be encoded by the table."""

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
        """Read a tag and its value."""
        tag = self.byte()
        if tag >= len(_DECODERS):
            raise _damaged(f"unknown tag {tag}")
        return _DECODERS[tag](self)

    def byte(self) -> int:
        """Read the next byte."""
        at = self.at
        if at >= self.end:
            raise _damaged("it is truncated")
        self.at = at + 1
        return self.data[at]

    def count(self) -> int:
        """Read a number >= 0, in its shortest form."""
        byte = self.byte()
        if byte < 0x80:
            return byte
        number, shift = byte & 0x7F, 7
        for _ in range(_LONGEST_COUNT):
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                if not byte:
                    raise _damaged("a number is not in its shortest form")
                return number
            shift += 7
        raise _damaged("a number is too long")

    def raw(self) -> bytes:
        """Read bytes, preceded by their number."""
        return self.take(self.count())

    def take(self, count: int) -> bytes:
        """Read `count` bytes."""
        at = self.at
        end = at + count
        if end > self.end:
            raise _damaged("it is truncated")
        self.at = end
        return self.data[at:end]

    def elements(self) -> int:
        """Read the number of elements, each at least a byte; one container deeper."""
        count = self.count()
        if count > self.end - self.at:
            raise _damaged("its counts exceed its size")
        self.depth += 1
        if self.depth > DEEPEST:
            raise _damaged(f"it is nested more than {DEEPEST} deep")
        return count

    def inside(self) -> list[Any]:
        """Read elements, preceded by their number."""
        elements = [self.value() for _ in range(self.elements())]
        self.depth -= 1
        return elements


def _nothing(writer: _RestrictedWriter, value: Any) -> None:
    """Write no bytes after the tag."""


def _encode_bool(writer: _RestrictedWriter, value: bool) -> None:
    writer.out.append(value)


def _decode_bool(reader: _Reader) -> bool:
    byte = reader.byte()
    if byte > 1:
        raise _damaged(f"invalid bool {byte}: expected 0 or 1")
    return byte == 1


def _encode_int(writer: _RestrictedWriter, value: int) -> None:
    size = (value.bit_length() + 8) // 8
    writer.raw(value.to_bytes(size, "little", signed=True))


def _decode_int(reader: _Reader) -> int:
    data = reader.raw()
    value = int.from_bytes(data, "little", signed=True)
    if len(data) != (value.bit_length() + 8) // 8:
        raise _damaged("an integer is not in its shortest form")
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
    # Python strings can hold lone surrogates, for example in file names.
    writer.raw(value.encode("utf-8", "surrogatepass"))


def _decode_str(reader: _Reader) -> str:
    try:
        return reader.raw().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise _damaged("invalid UTF-8 string") from error


def _encode_dict(writer: _RestrictedWriter, value: dict[Any, Any]) -> None:
    writer.count(len(value))
    writer.depth += 1
    if writer.depth > DEEPEST:
        raise _Refused(value, f"it is nested more than {DEEPEST} deep")
    for key, each in value.items():
        if type(key) not in _KEYS or (type(key) is int and not _fits(key)):
            raise _Refused(
                value, f"{describe_value(key)} cannot be a key in the restricted codec"
            )
        writer.value(key)
        writer.value(each)
    writer.depth -= 1


def _decode_dict(reader: _Reader) -> dict[Any, Any]:
    items: dict[Any, Any] = {}
    count = reader.elements()
    for _ in range(count):
        key = reader.value()
        if type(key) not in _KEYS or (type(key) is int and not _fits(key)):
            raise _damaged(f"invalid key {describe_value(key)}")
        items[key] = reader.value()
    if len(items) != count:
        raise _damaged("duplicate key")
    reader.depth -= 1
    return items


# Classes of keys for which a peer cannot construct many with one hash.
_KEYS = frozenset({type(None), bool, int, float, str, bytes})


def _fits(value: int) -> bool:
    return -(1 << 63) <= value < 1 << 63


def _encode_code(writer: _RestrictedWriter, value: Any) -> None:
    writer.out.append(value.code)


def _decoder_of(kind: type[DType | Layout | MemoryFormat]) -> Callable[[_Reader], Any]:
    def decode(reader: _Reader) -> Any:
        code = reader.byte()
        if not kind.is_code(code):
            raise _damaged(f"invalid {kind.__name__} code {code}")
        return kind(code)

    return decode


def _encode_device(writer: _RestrictedWriter, value: Device) -> None:
    writer.raw(str(value).encode())


def _decode_device(reader: _Reader) -> Device:
    try:
        return Device.parse(reader.raw().decode("ascii"))
    except Exception as error:
        raise _damaged("unknown device") from error


def _encode_worker(writer: _RestrictedWriter, value: WorkerInfo) -> None:
    _encode_str(writer, value.name)
    writer.out += _SMALL_INT.pack(value.id)


def _decode_worker(reader: _Reader) -> WorkerInfo:
    name = _decode_str(reader)
    try:
        return WorkerInfo(name, _SMALL_INT.unpack(reader.take(8))[0])
    except RpcMisuse as error:
        raise _damaged("it is not a worker") from error


def _encode_tensor(writer: _RestrictedWriter, value: Tensor) -> None:
    bits, device = value.key_bits & ~HANDLED, value._device.type
    # A tensor of inference mode is decoded in the mode of its reader.
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
    """Placeholder for `runtime.Parameter` in the table."""


# The table.  The tag is the index of a row, so rows never move.
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
    # A class of a higher layer, which is recognised once it is loaded.
    (_Parameter, _encode_tensor, _decode_parameter),
    (Device, _encode_device, _decode_device),
    (DType, _encode_code, _decoder_of(DType)),
    (Layout, _encode_code, _decoder_of(Layout)),
    (MemoryFormat, _encode_code, _decoder_of(MemoryFormat)),
    (WorkerInfo, _encode_worker, _decode_worker),
    # References of the classes in `ReferenceCodec.kinds`.
    (ReferenceCodec, _encode_reference, _decode_reference),
)
ROWS = tuple(CodecRow(tag, *each) for tag, each in enumerate(_ROWS))
_DECODERS = tuple(row.decode for row in ROWS)
_BY_CLASS = {row.kind: row for row in ROWS}
_REFERENCE = _BY_CLASS.pop(ReferenceCodec)
_PARAMETER = _BY_CLASS.pop(_Parameter)


def fits(value: Any, references: ReferenceCodec = NO_REFERENCES) -> bool:
    """Return True if the codec can encode a value; references are not recorded."""
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
    """Encode a value as a payload; `root` as for `pickling.pack`.

    Raises:
        Unsendable: a part has no row in the table; the error names it.
        RpcError: a reference cannot be sent.
    """
    try:
        return _written(value, references)
    except _Refused as refused:
        error = TypeError(refused.reason)
        raise unsendable(
            value, root, lambda part: not fits(part, references), error
        ) from None


def try_pack(value: Any, references: ReferenceCodec = NO_REFERENCES) -> Packed | None:
    """Encode a value as `pack` does; return None if the codec cannot encode it."""
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
    """Decode the value of a message.

    Raises:
        Undecodable: `pack` did not write the message.
        RpcError: a reference or a tensor cannot be received.
    """
    reader = _Reader(message)
    value = reader.value()
    if reader.at != reader.end:
        raise _damaged("trailing bytes after the payload")
    return value


def _damaged(reason: str) -> Undecodable:
    return Undecodable(found="A value", reason=reason)
