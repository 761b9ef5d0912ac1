"""Pickling: any value as a payload, and back.

The standard pickler writes nearly all values, with a table of reducers for tensors and
storages, references, compiled functions (by name) and modules (as archives).  If it
refuses a value, or if the pickle refers to a name of `__main__`, which is another
module in another process, cloudpickle writes the value again, with the code of
functions.

Rules:
- reading a payload runs arbitrary code of its writer: it is for trusted peers;
- a value that cannot be pickled is an error at the writer, which names the part;
- a reducer that a user registers precedes those of the table; of two for one class the
  first one stays;
- the last byte of a payload is its encoding, so a custom pickler (`use_pickler`) reads
  only payloads that it has written.

Rules of values that are written by cloudpickle:
- cloudpickle is loaded on first use;
- files are refused: cloudpickle would send their contents;
- functions and classes of `__main__` are sent by value and by name: a process whose
  `__main__` has the same code under that name, such as a process started from the same
  program, uses its own object, with its own state; any other process uses the value.
"""

import copyreg
import pickle
import re
import sys
from collections import ChainMap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from hashlib import blake2b
from io import BytesIO, TextIOWrapper
from logging import Logger, RootLogger
from types import CodeType, FunctionType
from typing import Any, Protocol

from everyorder.runtime.base.exceptions import is_interrupt, traceback_of
from everyorder.runtime.base.registry import Registry
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.errors.registration import AlreadyRegistered
from everyorder.runtime.errors.rpc import RpcError, Undecodable, UnknownCallable
from everyorder.runtime.errors.tensor import DeviceUnavailable
from everyorder.runtime.rpc.codec.compiled import Reducer, reducer_of_compiled
from everyorder.runtime.rpc.codec.payload import (
    CURRENT,
    CUSTOM,
    NO_REFERENCES,
    PICKLED,
    PLAIN,
    RESTRICTED,
    SMALL,
    Packed,
    PayloadReader,
    PayloadWriter,
    ReferenceCodec,
    SilentReferences,
    current_reader,
    current_writer,
    readonly_bytes,
    writable_bytes,
)
from everyorder.runtime.rpc.codec.restricted import read, unsendable
from everyorder.runtime.rpc.protocol.events import Payload
from everyorder.runtime.tensors.storage import Storage
from everyorder.runtime.tensors.tensor import Tensor, reduced
from everyorder.runtime.tensors.tensor import restored as restored_tensor

_PROTOCOL = 5
_END = bytes([PLAIN])
_SIMPLE = frozenset({bool, int, float, type(None)})
# In bytes: a pickler that wrote a larger message holds too much memory to be reused.
_MOST_REUSED = 1 << 16
# `__main__` is another module in another process.
_MAIN_NAME = "__main__"
_MAIN = _MAIN_NAME.encode()
# Classes that cloudpickle would send with their contents.
_NOT_SENT = (TextIOWrapper, Logger, RootLogger)


class Pickler(Protocol):
    """Interface of a custom pickler for `use_pickler`."""

    def serialize(self, obj: Any) -> tuple[bytes, list[Any]]:
        """Return bytes, and buffers that are sent as separate frames."""

    def deserialize(self, binary_data: bytes, tensor_table: list[Any]) -> Any:
        """Return the object that was serialized."""


class _CustomReducers:
    pickler: Pickler | None = None


_CUSTOM = _CustomReducers()


@contextmanager
def use_pickler(pickler: Pickler) -> Iterator[None]:
    """Use another pickler in the whole process during a block."""
    before, _CUSTOM.pickler = _CUSTOM.pickler, pickler
    try:
        yield
    finally:
        _CUSTOM.pickler = before


def current_pickler() -> Pickler | None:
    """Return the pickler of `use_pickler`; None outside of its block."""
    return _CUSTOM.pickler


def pack(
    value: Any,
    references: ReferenceCodec = NO_REFERENCES,
    root: Sequence[str] | str = "",
) -> Packed:
    """Encode a value as a payload.

    `root` is the name of the value in errors, or the names of a tuple's elements.

    Raises:
        Unsendable: a part cannot be pickled; the error names it.
        RpcError: a reference cannot be sent.
    """
    if _CUSTOM.pickler is not None:
        return _pack_by(_CUSTOM.pickler, value)
    if type(value) in _SIMPLE:
        # These need neither a reducer nor a name.
        return Packed([pickle.dumps(value, _PROTOCOL) + _END], [])
    before = CURRENT.writer
    try:
        packed = _by_name(value, PayloadWriter(references))
        if packed is not None:
            return packed
        refused: Exception = pickle.PicklingError("it belongs to `__main__`")
    except RpcError:
        raise
    except Exception as error:
        refused = error
    finally:
        CURRENT.writer = before
    try:
        return _by_value(value, PayloadWriter(references))
    except RpcError:
        raise
    except ImportError:
        # Without cloudpickle, pickle's error is the reason.
        reason = refused
    except Exception as error:
        reason = error
    finally:
        CURRENT.writer = before
    refused_part = partial(_is_refused, SilentReferences(references.kinds))
    raise unsendable(value, root, refused_part, reason) from reason


def unpack(
    payload: Payload,
    references: ReferenceCodec = NO_REFERENCES,
    carries: Sequence[Any] = (),
    *,
    trusted: bool = True,
    refused: str = "A pickled value",
) -> Any:
    """Decode the value of a payload; `carries` are those of the message.

    Only the restricted codec is read unless the writer is `trusted`; `refused` names
    the payload in the error.

    Raises:
        UnknownCallable: it could run code, or this worker lacks an object that it
            names.
        Undecodable: it cannot be read; the `__cause__` has the details.
        DeviceUnavailable: this machine lacks the device of a tensor.
        RpcError: a reference cannot be received.
    """
    frame = payload[0] if payload else b""
    kind = frame[-1] if frame else 0
    if kind == RESTRICTED:
        return read(PayloadReader(payload, references, carries))
    if not trusted:
        raise UnknownCallable(code="OnlyRegistered", found=refused)
    try:
        if kind == PLAIN and not carries:
            # `loads` stops at the end of the pickle, before the byte of the encoding.
            return pickle.loads(frame)  # noqa: S301  # only of trusted peers
        if kind == CUSTOM:
            return _unpack_by(_CUSTOM.pickler, payload)
        if kind in (PLAIN, PICKLED):
            return _read(payload, kind, references, carries)
    except (RpcError, DeviceUnavailable):
        raise
    except BaseException as error:
        # Also SystemExit: what a pickle runs must not end this worker.
        if is_interrupt(error):
            raise
        text = f"{code_of(error)}: {_text(error)}"
        missing = _missing(error)
        if missing is not None:
            raise UnknownCallable(kind="name", name=missing, reason=text) from error
        raise Undecodable(found="A pickled value", reason=text) from error
    raise Undecodable(found="A payload", reason=f"unknown encoding {kind}")


def _missing(error: BaseException) -> str | None:
    """Return the name that pickle did not find; None for any other error."""
    if issubclass(type(error), ModuleNotFoundError):
        return str(vars(ImportError)["name"].__get__(error) or "")
    # An AttributeError of a user's code, such as `__setstate__`, has a frame there.
    trace = traceback_of(error)
    inner = trace.tb_next if trace is not None else None
    own = inner is None or inner.tb_frame.f_code is _read.__code__
    if type(error) is AttributeError and own:
        match = re.search("attribute '(.+)' on", str(error))
        return match[1] if match else ""
    return None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as worse:  # an exception of user code
        if is_interrupt(worse):
            raise
        return f"whose text raises {type(worse).__name__}"


def _by_name(value: Any, message: PayloadWriter) -> Packed | None:
    """Return the value by pickle; None if the pickle names `__main__`."""
    CURRENT.writer = message
    # Removed during its use, as reducers may pickle; not put back after an error.
    pickler, file = CURRENT.pickler or _pickler()
    CURRENT.pickler = None
    pickler.dump(value)
    pickler.clear_memo()
    packed = _packed(file, message)
    if len(packed.payload[0]) < _MOST_REUSED:
        file.seek(0)
        file.truncate()
        CURRENT.pickler = pickler, file
    return None if _MAIN in packed.payload[0] else packed


def _pickler() -> tuple[pickle.Pickler, BytesIO]:
    file = BytesIO()
    pickler = pickle.Pickler(file, _PROTOCOL, buffer_callback=_keeps_in_band)
    pickler.dispatch_table = TABLE
    return pickler, file


def _by_value(value: Any, message: PayloadWriter) -> Packed:
    CURRENT.writer = message
    file = BytesIO()
    _value_pickler()(file).dump(value)
    return _packed(file, message)


def _packed(file: BytesIO, message: PayloadWriter) -> Packed:
    if message.is_plain:
        file.write(_END)
        return Packed([file.getvalue()], [])
    end, frames = message.tail(PICKLED)
    file.write(end)
    return Packed([file.getvalue(), *frames], message.carries)


def _keeps_in_band(buffer: pickle.PickleBuffer) -> bool:
    """Return True to keep a small buffer in the pickle; else add it as a frame."""
    raw = buffer.raw()
    if raw.nbytes <= SMALL:
        return True
    current_writer().add_buffer(readonly_bytes(raw))
    return False


def _read(
    payload: Payload, kind: int, references: ReferenceCodec, carries: Sequence[Any]
) -> Any:
    before = CURRENT.reader
    if kind == PLAIN:
        raise Undecodable(
            found="A payload", reason="a plain payload cannot carry references"
        )
    message = CURRENT.reader = PayloadReader(payload, references, carries)
    try:
        buffers = [writable_bytes(each).data for each in message.buffers]
        return pickle.loads(message.body, buffers=buffers)  # noqa: S301  # as above
    finally:
        CURRENT.reader = before


def _pack_by(pickler: Pickler, value: Any) -> Packed:
    data, buffers = pickler.serialize(value)
    return Packed([bytes(data) + bytes([CUSTOM]), *map(readonly_bytes, buffers)], [])


def _unpack_by(pickler: Pickler | None, payload: Payload) -> Any:
    if pickler is None:
        raise Undecodable(
            found="A pickled value",
            reason="it was written by a custom pickler, which is not in use here",
        )
    return pickler.deserialize(bytes(payload[0][:-1]), [*payload[1:]])


def _is_refused(mute: ReferenceCodec, value: Any) -> bool:
    """Return True if neither pickler can write the value."""
    before = CURRENT.writer
    try:
        for write in (_by_name, _by_value):
            try:
                write(value, PayloadWriter(mute))
            except Exception:  # noqa: S112  # a failure means refusal
                continue
            return False
        return True
    finally:
        CURRENT.writer = before


# The reducers.


def _reduce_tensor(tensor: Any) -> Any:
    parts = reduced(tensor)
    kind, storage, _, _, _, _, keys, requires_grad, number, *policy = parts[1]
    if type(storage) is not Storage:
        # A wrapper subclass has no elements.
        return parts
    place = current_writer().tensors.view(tensor)
    if keys is None and number is None and not policy:
        return _plain_tensor, (kind, place, requires_grad), *parts[2:]
    return _tensor, (kind, place, keys, requires_grad, number, *policy), *parts[2:]


def _plain_tensor(kind: type[Tensor], place: int, requires_grad: bool) -> Tensor:
    if not issubclass(kind, Tensor):
        raise Undecodable(
            found="A tensor", reason="its class is not a subclass of Tensor"
        )
    return current_reader().tensors.plain(kind, place, requires_grad)


def _tensor(kind: Any, place: int, *rest: Any) -> Any:
    storage, dtype, shape, strides, offset = current_reader().tensors.view(place)
    return restored_tensor(kind, storage, shape, strides, offset, dtype.name, *rest)


def _reduce_storage(storage: Any) -> Any:
    return _storage, (current_writer().tensors.storage(storage),)


def _storage(place: int) -> Storage:
    return current_reader().tensors.storage(place)


def _reduce_reference(reference: Any) -> Any:
    return _reference, (current_writer().add_reference(reference),)


def _reference(place: int) -> Any:
    return current_reader().reference(place)


class ReducerTable(dict[type, Reducer]):
    """Reducers by class, which are looked up each time: nothing is ever stored."""

    def __missing__(self, kind: type) -> Reducer:
        registered = REDUCERS.rows.get(kind)
        if registered is not None:
            return registered
        if kind is Storage:
            return _reduce_storage
        if issubclass(kind, current_writer().references.kinds):
            return _reduce_reference
        if issubclass(kind, Tensor) and _reduces_as_tensors(kind):
            return _reduce_tensor
        compiled = reducer_of_compiled(kind)
        return copyreg.dispatch_table[kind] if compiled is None else compiled


def _reduces_as_tensors(kind: Any) -> bool:
    """Return True if a class of tensors does not override the pickling of `Tensor`."""
    plain: Any = Tensor
    same = kind.__reduce__ is plain.__reduce__
    return same and kind.__reduce_ex__ is plain.__reduce_ex__


TABLE = ReducerTable()
# The reducers of users, by exact class.
REDUCERS: Registry[type, Reducer] = Registry("reducers", permanent=True)


def register_reducer(kind: type, reducer: Reducer) -> None:
    """Register a reducer for a class, not its subclasses, in the form of `copyreg`.

    Of two reducers for one class the first one stays.
    """
    # The rule is upstream's, and the order is the user's; nothing else depends on it.
    with suppress(AlreadyRegistered):
        REDUCERS.register(kind, reducer, stacklevel=2)


# Pickling by value.


class _MainValue:
    """A function or class of `__main__`, to be written by value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@cache
def _value_pickler() -> type:
    """Return the class of picklers by value: cloudpickle with a preceding table."""
    import cloudpickle

    own = cloudpickle.Pickler._dispatch_table
    reducers = {kind: each for kind, each in own.items() if kind not in _NOT_SENT}

    class ValuePickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle is untyped
        def __init__(self, file: BytesIO) -> None:
            # Before `super().__init__`, which reads the table once.
            self.dispatch_table = ChainMap(TABLE, reducers)
            super().__init__(file, protocol=_PROTOCOL, buffer_callback=_keeps_in_band)
            self._values: dict[int, _MainValue] = {}

        def reducer_override(self, obj: Any) -> Any:
            if type(obj) is _MainValue:
                return super().reducer_override(obj.value)
            if isinstance(obj, FunctionType | type) and _of_main(obj):
                value = self._values.get(id(obj))
                if value is not None:
                    # A recursive function refers to its value, not to its name.
                    return _identity, (value,)
                value = self._values[id(obj)] = _MainValue(obj)
                return _local_or_value, (obj.__qualname__, digest(obj), value)
            return super().reducer_override(obj)

    return ValuePickler


def _of_main(obj: Any) -> bool:
    return obj.__module__ == _MAIN_NAME and _in_main(obj.__qualname__) is obj


def _in_main(qualname: str) -> Any:
    target: Any = sys.modules.get(_MAIN_NAME)
    for name in qualname.split("."):
        target = getattr(target, name, None)
    return target


def _identity(value: Any) -> Any:
    return value


def _local_or_value(qualname: str, expected: bytes, value: Any) -> Any:
    """Return the object of this process's `__main__` if its code is equal, else the
    value.
    """
    here = _in_main(qualname)
    if isinstance(here, FunctionType | type) and digest(here) == expected:
        return here
    return value


def digest(obj: Any) -> bytes:
    """Return a digest of the code of a function, or of the methods of a class."""
    return blake2b("\n".join(_texts(obj)).encode(), digest_size=16).digest()


def _texts(obj: Any) -> Iterator[str]:
    if isinstance(obj, FunctionType):
        yield from _of_code(obj.__code__)
    elif isinstance(obj, type):
        yield from (each.__qualname__ for each in obj.__mro__)
        for name, each in sorted(vars(obj).items()):
            inner = getattr(each, "__func__", each)
            if isinstance(inner, FunctionType):
                yield name
                yield from _of_code(inner.__code__)
    else:
        yield repr(type(obj))


def _of_code(code: CodeType) -> Iterator[str]:
    """Yield the code as texts, without its file name and line numbers."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _of_code(each)
        elif isinstance(each, frozenset):
            yield repr(sorted(map(repr, each)))
        else:
            yield repr(each)
