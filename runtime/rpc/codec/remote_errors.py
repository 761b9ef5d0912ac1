"""Remote errors: an exception as a payload, and as an exception again.

Its name and its text travel, its traceback as text, its notes, its cause and context
and the members of a group, each in the same way; its arguments and attributes as far as
they can be sent.

Rules:
- the class at the caller derives from RuntimeError (it is `RemoteError`), and from the
  class of the exception if that can be found there: no constructor of it runs.  The
  class is made once for each original, and kept while an exception of it lives;
- exceptions that end a process or a loop (`SystemExit`, `KeyboardInterrupt`,
  `StopIteration`) are a plain `RemoteError` at the caller, with the name in it;
- an exception that came from another worker is handed on as the same one: its text
  names each worker once, the nearest first;
- nothing of an exception is trusted: its text may raise, its attributes may not travel;
- of an untrusted peer nothing is imported, and nothing is unpickled: its exceptions
  have classes of Python and of this package only.
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

from everyorder.runtime.errors.base import EveryorderError, builtin_base
from everyorder.runtime.errors.rpc import RemoteError, Undecodable
from everyorder.runtime.rpc.codec import pickling, restricted
from everyorder.runtime.rpc.codec.payload import Packed
from everyorder.runtime.rpc.protocol.events import Payload
from everyorder.runtime.rpc.protocol.identities import WorkerInfo

# Causes of causes, groups in groups, and exceptions in a group.
_DEEPEST = 20
_MOST_MEMBERS = 1000

# They control loops, so they are never raised from a remote error.
_CONTROL = (StopIteration, StopAsyncIteration)

# Fields of Python's own exceptions besides arguments and `__dict__`, by class.
_FIELDS: tuple[tuple[type[BaseException], tuple[str, ...]], ...] = (
    (OSError, ("filename", "filename2")),
    (ImportError, ("name", "path")),
    (NameError, ("name",)),
    (AttributeError, ("name",)),
)


# Generators and coroutines of each kind, and at what they stand while they pause.
_PAUSES = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_YIELDS = opmap["YIELD_VALUE"]

# Leading frames of this folder are left out of tracebacks.
_FOLDER = str(Path(__file__).parent.parent)


class _Record(NamedTuple):
    """The form in which one exception travels, by the restricted codec."""

    module: str
    qualname: str
    text: str
    # Workers and frames, the nearest first.
    hops: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    # Each as a value of the codec, pickled, or None where neither can be.
    args: tuple[Any, ...] = ()
    state: tuple[tuple[str, Any], ...] = ()
    # Records, None where there is none.
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

# How an argument travels.
_AS_IT_IS, _PICKLED = "value", "pickled"


# Where it was raised.


def pack_error(error: BaseException, worker: WorkerInfo) -> Packed:
    """An exception that a call raised here, as a payload; never raises itself."""
    try:
        record = _record(error, repr(worker), set(), 0)
        return restricted.pack(tuple(record))
    except Exception as worse:  # it is of somebody's own making
        hops = ((repr(worker), _frames(error.__traceback__)),)
        text = f"{_text(error)} (nothing more can be told: {type(worse).__name__})"
        return restricted.pack((*_name(type(error)), text, hops))


def _record(
    error: BaseException, who: str | None, seen: set[int], depth: int
) -> _Record:
    """The record of an exception; `who` is the worker where it is now, if any."""
    seen.add(id(error))
    hops = () if who is None else ((who, _frames(error.__traceback__)),)
    if isinstance(error, RemoteError):
        names = error.remote_module, error.remote_type
        text, hops = error.remote_text, (*hops, *error.remote_hops)
    else:
        names, text = _name(type(error)), _text(error)
    around: list[Any] = []
    for other in (error.__cause__, error.__context__):
        if other is None or id(other) in seen or depth > _DEEPEST:
            around.append(None)
        else:
            around.append(tuple(_record(other, who, seen, depth + 1)))
    members = None
    if isinstance(error, BaseExceptionGroup) and depth <= _DEEPEST:
        some = error.exceptions[:_MOST_MEMBERS]
        members = tuple(tuple(_record(each, who, seen, depth + 1)) for each in some)
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
        suppress=bool(error.__suppress_context__),
        members=members,
    )


def _notes(error: BaseException) -> tuple[str, ...]:
    found = getattr(error, "__notes__", ())
    if not isinstance(found, list | tuple):
        return ()
    return tuple(each for each in found if type(each) is str)


def _args(error: BaseException) -> tuple[Any, ...]:
    found = BaseException.args.__get__(error)  # type: ignore[attr-defined]  # a getter in C
    return found if isinstance(found, tuple) else ()


def _state(error: BaseException) -> dict[str, Any]:
    """The attributes, but for those of `RemoteError` and notes."""
    found = {
        name: each
        for name, each in vars(error).items()
        if type(name) is str and not name.startswith("remote_") and name != "__notes__"
    }
    for kind, names in _FIELDS:
        if isinstance(error, kind):
            found.update((name, getattr(error, name, None)) for name in names)
    return found


def _packed_value(value: Any) -> tuple[str, Any] | None:
    """An argument or attribute as it travels."""
    try:
        if restricted.fits(value):
            return _AS_IT_IS, value
        return _PICKLED, pickle.dumps(value)
    except Exception:  # the exception travels without it
        return None


def _frames(trace: TracebackType | None) -> str:
    try:
        frames = traceback.extract_tb(trace)
        while frames and frames[0].filename.startswith(_FOLDER):
            frames.pop(0)
        lines = traceback.format_list(frames)
    except Exception as error:  # the file is no text, for one
        lines = [f"  (no frames: {type(error).__name__})\n"]
    if not lines:
        return ""
    return "".join(["Traceback (most recent call last):\n", *lines]).rstrip("\n")


def _text(error: BaseException) -> str:
    try:
        return str.__str__(str(error))
    except Exception as worse:
        return f"(its text raises {type(worse).__name__})"


def _name(kind: type) -> tuple[str, str]:
    module = kind.__module__
    return module if type(module) is str else "", str.__str__(kind.__qualname__)


def free_frames(error: BaseException) -> None:
    """Clear the local variables of the frames in an error's traceback; lines stay.

    The error may be the value of a reference that is a local there: the cycle would
    keep both until garbage is collected.
    """
    for each in _chain(error):
        trace = each.__traceback__
        frame = None if trace is None else trace.tb_frame.f_back
        while trace is not None:
            _free(trace.tb_frame)
            trace = trace.tb_next
        while frame is not None and _free(frame):
            frame = frame.f_back


def _free(frame: FrameType) -> bool:
    """Clear the locals of a frame; False if it runs, or will be resumed."""
    code = frame.f_code
    if code.co_flags & _PAUSES and code.co_code[frame.f_lasti] == _YIELDS:
        # Clearing a frame ends its generator, and this one caught the error.
        return False
    try:
        frame.clear()
    except RuntimeError:
        return False
    return True


def _chain(error: BaseException) -> list[BaseException]:
    """An error, with all causes and contexts."""
    found: dict[int, BaseException] = {}
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and id(each) not in found:
            found[id(each)] = each
            left += (each.__cause__, each.__context__)
    return [*found.values()]


# Where it arrives.


def unpack_error(payload: Payload, *, trusted: bool = True) -> RemoteError:
    """The exception of a payload, to be raised here.

    Raises:
        Undecodable: it is none that `pack_error` wrote.
    """
    value = pickling.unpack(payload, trusted=False)
    try:
        return _rebuilt(_check_record(value), trusted)
    except (TypeError, ValueError, AttributeError) as error:
        raise Undecodable(found="An exception", reason="it is none") from error


def _check_record(value: Any) -> _Record:
    """A value as a record.  Raises TypeError and ValueError, whatever it is."""
    # Only tuples are iterated: another object, as a tensor, could be endless.
    if type(value) is not tuple:
        raise TypeError("no record")
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
    # A cause suppresses the context, unless it is said again.
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
    """The exception, of a class that derives from its own; None if that cannot be."""
    try:
        original = _class_named(record.module, record.qualname, trusted)
        if original is None:
            return None
        if issubclass(original, EveryorderError):
            # A code may add builtin base classes.
            with suppress(Exception):  # what a peer sends as a code may be none
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
    except Exception:  # the class of a user; a plain RemoteError takes its place
        return None


def _arguments(
    record: _Record, members: list[RemoteError] | None, trusted: bool
) -> tuple[Any, ...]:
    if members is not None:
        # The text ends with the number of members.
        return record.text.rpartition(" (")[0] or record.text, members
    try:
        return tuple(_unpacked_value(each, trusted) for each in record.args)
    except Exception:
        return (record.text,)


def _unpacked_value(sent: Any, trusted: bool) -> Any:
    """An argument or attribute.  Raises whatever reading it raises."""
    if type(sent) is not tuple:
        raise ValueError("nothing was sent")
    how, value = sent
    if how == _AS_IT_IS:
        return value
    if how != _PICKLED or not trusted:
        raise ValueError("it is not read")
    return pickle.loads(value)  # noqa: S301  # only of trusted peers


def _set_attribute(
    error: RemoteError, own: dict[str, Any], name: str, sent: Any, trusted: bool
) -> None:
    if _is_method(error, name, trusted):
        return
    try:
        value = _unpacked_value(sent, trusted)
    except Exception:  # the exception is worth more than one attribute of it
        return
    if any(name in names and isinstance(error, kind) for kind, names in _FIELDS):
        _set(error, name, value)
    else:
        own[name] = value


def _is_method(error: RemoteError, name: str, trusted: bool) -> bool:
    """Whether an attribute would hide a method of the error."""
    kind = RemoteError if trusted else type(error)
    return callable(getattr(kind, name, None))


def _class_named(module: str, qualname: str, trusted: bool) -> type[Exception] | None:
    """The class of that name if it is one of exceptions."""
    known = module == "builtins" or module.startswith("everyorder.runtime.errors.")
    if known and module in sys.modules:
        found: Any = sys.modules[module]
    elif trusted:
        found = import_module(module)
    else:
        return None
    for name in qualname.split("."):
        found = getattr(found, name)
    if found is BaseExceptionGroup:
        # All of its members are exceptions here.
        return ExceptionGroup
    if not isinstance(found, type) or not issubclass(found, Exception):
        return None
    return None if issubclass(found, _CONTROL) else found


# Class -> the one of its remote exceptions, which dies with the last of them.
_DERIVED: "WeakKeyDictionary[type, ref[type[RemoteError]]]" = WeakKeyDictionary()


def _derived(original: type[Exception]) -> type[RemoteError]:
    """The class of remote exceptions of a class.  Raises where there can be none."""
    known = _DERIVED.get(original)
    kind = None if known is None else known()
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
            # These names of `RemoteError` say nothing of the original.
            "code": original.__name__,
            **{
                name: getattr_static(original, name)
                for name in ("code", "rows", "words")
                if hasattr(original, name)
            },
        }
        made: Any = type(original.__name__, tuple(bases), words)
        derived: type[RemoteError] = made
        _DERIVED[original] = ref(derived)
        return derived
    return kind


def _reduce(error: RemoteError) -> tuple[Any, ...]:
    return _restored, (tuple(_record(error, None, set(), 0)),)


def _restored(value: Any) -> RemoteError:
    """A remote exception from its pickle, which is trusted."""
    return _rebuilt(_check_record(value), True)
