"""Remote errors: an exception as a payload, and as an exception again.

The payload holds the exception's class name and message, its traceback as text, its
notes, and its cause, context and the members of a group, each encoded in the same way;
arguments and attributes are included if they can be sent.

Rules:
- the class at the caller derives from RuntimeError (it is a `RemoteError`), and from
  the class of the exception if it is available there; constructors of that class do not
  run.  The class is created once for each original, and kept while an exception of it
  lives;
- exceptions that end a process or a loop (`SystemExit`, `KeyboardInterrupt`,
  `StopIteration`) are a plain `RemoteError` at the caller, which holds the name;
- an exception of another worker is passed on as the same exception: its text names each
  worker once, the nearest first;
- an exception is not trusted: each of its methods may raise, also what ends a process,
  and its attributes may not be sendable.  Its fields are read without code of its
  class; a class that defines fields of exceptions itself is not used at the caller;
- for an untrusted peer, modules are not imported, and pickles are not read: its
  exceptions have classes of Python and of this package only.
"""

import pickle
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, getattr_static
from opcode import opmap
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

from everyorder.runtime.base.exceptions import (
    cause_of,
    context_of,
    is_interrupt,
    traceback_of,
)
from everyorder.runtime.errors.base import EveryorderError, builtin_base
from everyorder.runtime.errors.rpc import RemoteError, Undecodable
from everyorder.runtime.rpc.codec import pickling, restricted
from everyorder.runtime.rpc.codec.payload import Packed
from everyorder.runtime.rpc.protocol.events import Payload
from everyorder.runtime.rpc.protocol.identities import WorkerInfo

# Limits for causes of causes and groups in groups, and for exceptions in a group.
_DEEPEST = 20
_MOST_MEMBERS = 1000

# These control loops, so they are never raised from a remote error.
_CONTROL = (StopIteration, StopAsyncIteration)

# Fields of Python's own exceptions in addition to arguments and `__dict__`, by class.
_FIELDS: tuple[tuple[type[BaseException], tuple[str, ...]], ...] = (
    (OSError, ("filename", "filename2")),
    (ImportError, ("name", "path")),
    (NameError, ("name",)),
    (AttributeError, ("name",)),
)


# Flags of generators and coroutines of each kind, and the opcode at which they pause.
_PAUSES = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_YIELDS = opmap["YIELD_VALUE"]

# Getters of fields, which do not run code of a user's class.
_DICT: Any = BaseException.__dict__["__dict__"]
_SUPPRESS: Any = BaseException.__dict__["__suppress_context__"]
_MODULE: Any = type.__dict__["__module__"]
_QUALNAME: Any = type.__dict__["__qualname__"]
# A class that defines one of these is not used at the caller.
_OVERRIDDEN = (
    *("__getattribute__", "__class__", "__traceback__", "__notes__"),
    *("__cause__", "__context__", "__suppress_context__", "with_traceback"),
)
# The flag of classes that are defined in Python.
_HEAP_TYPE = 1 << 9

# Leading frames of this folder are omitted from tracebacks.
_FOLDER = str(Path(__file__).parent.parent)


class _Record(NamedTuple):
    """The encoded form of one exception, for the restricted codec."""

    module: str
    qualname: str
    text: str
    # Workers and frames, the nearest first.
    hops: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    # Each is a value of the codec, a pickle, or None if neither is possible.
    args: tuple[Any, ...] = ()
    state: tuple[tuple[str, Any], ...] = ()
    # Records, or None.
    cause: Any = None
    context: Any = None
    suppress: bool = False
    members: Any = None


# The classes of the fields of a record.
_TEXT, _SEVERAL, _OPTIONAL = (str,), (tuple,), (tuple, type(None))
_KINDS: tuple[tuple[type, ...], ...] = (
    *(_TEXT, _TEXT, _TEXT, _SEVERAL, _SEVERAL, _SEVERAL, _SEVERAL),
    *(_OPTIONAL, _OPTIONAL, (bool,), _OPTIONAL),
)

# The encodings of an argument.
_AS_IT_IS, _PICKLED = "value", "pickled"


# At the worker that raises an exception.


def pack_error(error: BaseException, worker: WorkerInfo) -> Packed:
    """Encode an exception that a call raised on this worker; never raises."""
    try:
        record = _record(error, repr(worker), set(), 0)
        return restricted.pack(tuple(record))
    except BaseException as worse:  # methods of a user's exception
        _raise_interrupt(worse)
        hops = ((repr(worker), _frames(traceback_of(error))),)
        text = f"{text_of(error)} (no further details: {_name(type(worse))[1]})"
        return restricted.pack((*_name(type(error)), text, hops))


def _record(
    error: BaseException, who: str | None, visited: set[int], depth: int
) -> _Record:
    """Return the record of an exception; `who` is the worker that has it, if any."""
    visited.add(id(error))
    hops = () if who is None else ((who, _frames(traceback_of(error))),)
    if issubclass(type(error), RemoteError):
        assert isinstance(error, RemoteError), "checked by its class"
        names = error.remote_module, error.remote_type
        text, hops = error.remote_text, (*hops, *error.remote_hops)
    else:
        names, text = _name(type(error)), text_of(error)
    around: list[Any] = []
    for other in (cause_of(error), context_of(error)):
        if other is None or id(other) in visited or depth > _DEEPEST:
            around.append(None)
        else:
            around.append(tuple(_record(other, who, visited, depth + 1)))
    members = None
    if issubclass(type(error), BaseExceptionGroup) and depth <= _DEEPEST:
        assert isinstance(error, BaseExceptionGroup), "checked by its class"
        exceptions = error.exceptions[:_MOST_MEMBERS]
        members = tuple(
            tuple(_record(each, who, visited, depth + 1)) for each in exceptions
        )
    return _Record(
        module=names[0],
        qualname=names[1],
        text=text,
        hops=hops,
        notes=_notes(error),
        args=() if members is not None else tuple(map(_packed_value, _args(error))),
        state=tuple(
            (name, _packed_value(each)) for name, each in _state(error).items()
        ),
        cause=around[0],
        context=around[1],
        suppress=bool(_SUPPRESS.__get__(error)),
        members=members,
    )


def _notes(error: BaseException) -> tuple[str, ...]:
    notes = _attributes(error).get("__notes__", ())
    if type(notes) is not list and type(notes) is not tuple:
        return ()
    return tuple(each for each in notes if type(each) is str)


def _args(error: BaseException) -> tuple[Any, ...]:
    args = BaseException.args.__get__(error)  # type: ignore[attr-defined]  # a getter in C
    return args if isinstance(args, tuple) else ()


def _state(error: BaseException) -> dict[str, Any]:
    """Return the attributes, except those of `RemoteError` and the notes."""
    attributes = {
        name: each
        for name, each in _attributes(error).items()
        if type(name) is str and not name.startswith("remote_") and name != "__notes__"
    }
    for kind, names in _FIELDS:
        if issubclass(type(error), kind):
            # By the getters of the builtin class: a user's property may raise.
            getters = vars(kind)
            attributes.update((name, getters[name].__get__(error)) for name in names)
    return attributes


def _attributes(error: BaseException) -> dict[str, Any]:
    """Return the `__dict__` of an exception, without code of its class."""
    attributes: dict[str, Any] = _DICT.__get__(error)
    return attributes


def _packed_value(value: Any) -> tuple[str, Any] | None:
    """Return the encoded form of an argument or attribute."""
    try:
        if restricted.fits(value):
            return _AS_IT_IS, value
        return _PICKLED, pickle.dumps(value)
    except BaseException as error:  # the exception is sent without it
        _raise_interrupt(error)
        return None


def _frames(trace: TracebackType | None) -> str:
    try:
        frames = traceback.extract_tb(trace)
        while frames and frames[0].filename.startswith(_FOLDER):
            frames.pop(0)
        lines = traceback.format_list(frames)
    except BaseException as error:  # such as a source file that is not text
        _raise_interrupt(error)
        lines = [f"  (no frames: {type(error).__name__})\n"]
    if not lines:
        return ""
    return "".join(["Traceback (most recent call last):\n", *lines]).rstrip("\n")


def text_of(error: BaseException) -> str:
    """Return the text of an exception, or that it has none."""
    try:
        return str.__str__(str(error))
    except BaseException as worse:
        _raise_interrupt(worse)
        return f"(its text raises {_name(type(worse))[1]})"


def _name(kind: type) -> tuple[str, str]:
    module = _MODULE.__get__(kind)
    return module if type(module) is str else "", str.__str__(_QUALNAME.__get__(kind))


def _raise_interrupt(error: BaseException) -> None:
    if is_interrupt(error):
        raise error


def free_frames(error: BaseException) -> None:
    """Clear the local variables of the frames in an error's traceback; lines stay.

    The error may be the value of a reference that is a local variable there: the cycle
    would keep both alive until garbage collection.
    """
    for each in _chain(error):
        trace = traceback_of(each)
        frame = None if trace is None else trace.tb_frame.f_back
        while trace is not None:
            _free(trace.tb_frame)
            trace = trace.tb_next
        while frame is not None and _free(frame):
            frame = frame.f_back


def _free(frame: FrameType) -> bool:
    """Clear the locals of a frame; return False if it runs, or will be resumed."""
    code = frame.f_code
    if code.co_flags & _PAUSES and code.co_code[frame.f_lasti] == _YIELDS:
        # Clearing a frame ends its generator, and this generator caught the error.
        return False
    try:
        frame.clear()
    except RuntimeError:
        return False
    return True


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error with all causes and contexts."""
    chain: dict[int, BaseException] = {}
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and id(each) not in chain:
            chain[id(each)] = each
            left += (cause_of(each), context_of(each))
    return [*chain.values()]


# At the worker that receives an exception.


def unpack_error(payload: Payload, *, trusted: bool = True) -> RemoteError:
    """Decode the exception of a payload; the caller raises it.

    Raises:
        Undecodable: `pack_error` did not write the payload.
    """
    value = pickling.unpack(payload, trusted=False)
    try:
        return _rebuilt(_check_record(value), trusted)
    except (TypeError, ValueError, AttributeError) as error:
        raise Undecodable(found="An exception", reason="it is malformed") from error


def _check_record(value: Any) -> _Record:
    """Return a value as a record.

    Raises:
        TypeError, ValueError: the value is not a record.
    """
    # Only tuples are iterated: another object, such as a tensor, could be endless.
    if type(value) is not tuple:
        raise TypeError("not a record")
    record = _Record(*value)
    if not all(type(each) in kinds for each, kinds in zip(record, _KINDS, strict=True)):
        raise TypeError("fields")
    for pair in record.hops:
        if type(pair) is not tuple or [type(each) for each in pair] != [str, str]:
            raise TypeError("hops")
    for pair in record.state:
        if type(pair) is not tuple or len(pair) != 2 or type(pair[0]) is not str:
            raise TypeError("state")
    if not all(type(each) is str for each in record.notes):
        raise TypeError("notes")
    return record


def _rebuilt(record: _Record, trusted: bool) -> RemoteError:
    members = None
    if record.members is not None:
        members = [_rebuilt(_check_record(each), trusted) for each in record.members]
    error = _of_class(record, members, trusted)
    if error is None:
        error = RemoteError(**_fields(record))
    around: dict[str, Any] = {"__suppress_context__": bool(record.suppress)}
    if record.notes:
        around["__notes__"] = [*record.notes]
    for name, each in (("__cause__", record.cause), ("__context__", record.context)):
        if each is not None:
            around[name] = _rebuilt(_check_record(each), trusted)
    # Sorted: setting a cause suppresses the context, so `__suppress_context__` is last.
    for name, each in sorted(around.items()):
        _set(error, name, each)
    return error


# Not by the class, which may override it.
_set = object.__setattr__


def _fields(record: _Record) -> dict[str, Any]:
    return {
        "remote_module": record.module,
        "remote_type": record.qualname,
        "remote_text": record.text,
        "remote_hops": tuple((who, frames) for who, frames in record.hops),
    }


def _of_class(
    record: _Record, members: list[RemoteError] | None, trusted: bool
) -> RemoteError | None:
    """Return the exception, of a class derived from its own; None if impossible."""
    try:
        original = _class_named(record.module, record.qualname, trusted)
        if original is None:
            return None
        if issubclass(original, EveryorderError):
            # A code may add builtin base classes.
            with suppress(Exception):  # a peer may send an unknown code
                sent = dict(record.state)["code"]
                original = original.of_code(_unpacked_value(sent, trusted))
        kind = _derived(original)
        # Only `__new__` and `__init__` of builtin classes run.
        base = builtin_base(kind)
        args = _arguments(record, members, trusted)
        error: RemoteError = base.__new__(kind, *args)
        base.__init__(error, *args)
        own: dict[str, Any] = object.__getattribute__(error, "__dict__")
        for name, each in record.state:
            _set_attribute(error, own, str(name), each, trusted)
        own.update(_fields(record))
        return error
    except BaseException as worse:  # a user's class; a plain RemoteError is used
        _raise_interrupt(worse)
        return None


def _arguments(
    record: _Record, members: list[RemoteError] | None, trusted: bool
) -> tuple[Any, ...]:
    if members is not None:
        # The message ends with the number of members.
        return record.text.rpartition(" (")[0] or record.text, members
    try:
        return tuple(_unpacked_value(each, trusted) for each in record.args)
    except BaseException as worse:
        _raise_interrupt(worse)
        return (record.text,)


def _unpacked_value(sent: Any, trusted: bool) -> Any:
    """Return an argument or attribute; exceptions of reading it propagate."""
    if type(sent) is not tuple:
        raise ValueError("not sent")
    how, value = sent
    if how == _AS_IT_IS:
        return value
    if how != _PICKLED or not trusted:
        raise ValueError("neither a value nor a trusted pickle")
    return pickle.loads(value)  # noqa: S301  # only of trusted peers


def _set_attribute(
    error: RemoteError, own: dict[str, Any], name: str, sent: Any, trusted: bool
) -> None:
    if _is_method(error, name, trusted):
        return
    try:
        value = _unpacked_value(sent, trusted)
    except BaseException as worse:  # the exception matters more than an attribute
        _raise_interrupt(worse)
        return
    if any(name in names and isinstance(error, kind) for kind, names in _FIELDS):
        _set(error, name, value)
    else:
        own[name] = value


def _is_method(error: RemoteError, name: str, trusted: bool) -> bool:
    """Return True if an attribute would hide a method of the error."""
    kind = RemoteError if trusted else type(error)
    return callable(getattr(kind, name, None))


def _class_named(module: str, qualname: str, trusted: bool) -> type[Exception] | None:
    """Return the class of that name if it is a class of exceptions, else None."""
    loaded = module == "builtins" or module.startswith("everyorder.runtime.errors.")
    if loaded and module in sys.modules:
        target: Any = sys.modules[module]
    elif trusted:
        target = import_module(module)
    else:
        return None
    for name in qualname.split("."):
        target = getattr(target, name)
    if target is BaseExceptionGroup:
        # All of its members are exceptions here.
        return ExceptionGroup
    if not isinstance(target, type) or not issubclass(target, Exception):
        return None
    if issubclass(target, _CONTROL) or not _is_plain(target):
        return None
    return target


def _is_plain(kind: type) -> bool:
    """Return True if a class leaves the fields of exceptions as they are.

    Raising and reporting an exception would run the code of any other class.
    """
    fields: dict[str, Any] = {**vars(object), **vars(BaseException)}
    return all(
        name not in vars(each) or vars(each)[name] is fields.get(name)
        for each in kind.__mro__
        if each.__flags__ & _HEAP_TYPE
        for name in _OVERRIDDEN
    )


# Class -> its class of remote exceptions, which dies with the last of them.
_DERIVED: "WeakKeyDictionary[type, ref[type[RemoteError]]]" = WeakKeyDictionary()


def _derived(original: type[Exception]) -> type[RemoteError]:
    """Return the class of remote exceptions of a class; raise if there can be none."""
    reference = _DERIVED.get(original)
    kind = None if reference is None else reference()
    if kind is None:
        bases: Sequence[type] = (RemoteError, original)
        if issubclass(RemoteError, original):
            bases = (RemoteError,)
        elif issubclass(original, RemoteError):
            bases = (original,)
        words = {
            "__module__": original.__module__,
            "__qualname__": original.__qualname__,
            "__doc__": original.__doc__,
            "__reduce__": _reduce,
            "_foreign": not issubclass(original, EveryorderError),
            "_named": None,
            # These names of `RemoteError` do not describe the original.
            "code": original.__name__,
            **{
                name: getattr_static(original, name)
                for name in ("code", "rows", "words")
                if hasattr(original, name)
            },
        }
        created: Any = type(original.__name__, tuple(bases), words)
        derived: type[RemoteError] = created
        _DERIVED[original] = ref(derived)
        return derived
    return kind


def _reduce(error: RemoteError) -> tuple[Any, ...]:
    return _restored, (tuple(_record(error, None, set(), 0)),)


def _restored(value: Any) -> RemoteError:
    """Rebuild a remote exception from its pickle, which is trusted."""
    return _rebuilt(_check_record(value), True)
