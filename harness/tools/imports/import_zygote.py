"""The process without imported modules, and its children that import in one order.

It is run as a script, never imported: it reads orders from its standard input and forks
a child for each; on a platform without fork it plays one order itself and ends. A child
imports the modules, and then observes the state
(`harness.tools.imports.import_observation`).

Rules:
- before the modules, only parts of the interpreter and modules of its start may be
  imported: a module that is loaded already is not imported again, so its place in the
  order would be lost; the observing code is imported after the modules;
- a child that exceeds its time writes its stack and ends; its process group is killed;
- when the standard input ends, the child is killed and this process ends;
- no files are written next to the modules, not even compiled ones;
- a child has no input, and the end of its output is stored in case it dies.

Messages are values of `marshal`, because `pickle` imports too much: the first has the
code of our own modules, the others are requests (dicts of `order_processes.py`); a
reply is the kind of end of a child, its exit code, its output, and a packed
`Observation`.
"""

import faulthandler
import marshal
import os
import sys
import time
from _frozen_importlib import ModuleSpec

TYPE_CHECKING = False  # `typing` imports what the modules may be about to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any, TypeAlias

    # By the name of a module: its file, whether it is a package, and its code.
    Codes: TypeAlias = dict[str, tuple[str, bool, CodeType]]

if sys.platform != "win32":
    import select

# Looked up before the modules are imported: one of them may replace it.
_write = os.write

# `signal` would import `enum`; POSIX fixes this number.
SIGKILL = 9

# Time for a child to write its stack and end.
GRACE_SECONDS = 0.5

# Interval of checking that a child is alive while its children hold its pipes.
POLL_SECONDS = 0.1

# Enough for a traceback, which is needed of a child that dies.
MOST_PRINTED = 8_000

# Exit code of a child that fails to observe; `sysexits.h` uses it for internal errors.
INTERNAL_ERROR = 70


def serve(start: frozenset[str], codes: "Codes") -> None:
    """Fork a child for each request until the input ends."""
    while True:
        try:
            request = marshal.load(sys.stdin.buffer)  # noqa: S302  # of our parent
        except EOFError:
            return
        reply = _run_in_child(request, start, codes)
        if reply is None:
            return
        marshal.dump(reply, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def play(request: "dict[str, Any]", start: frozenset[str], codes: "Codes") -> bytes:
    """Import in the order of the request; return the packed observation."""
    _taken = _scatter_memory(request["disturbance"])
    raised: list[tuple[str, str, str, str]] = []
    names: dict[str, object] = {}
    for module in request["modules"]:
        try:
            names[module.partition(".")[0]] = __import__(module)
        except BaseException as error:
            raised.append((module, *_error_texts(error)))
    modules = dict(sys.modules)
    observe = _observer(codes)
    return observe(request, start, modules, names, tuple(raised))


def _scatter_memory(disturbance: int) -> list[bytearray]:
    """Allocate memory with holes in it, so that later objects are in another order.

    The holes, and the order of filling them, are pseudo-random, so that successive
    objects are in an order that no other play has as well. The generator is Knuth's
    MMIX: `random` would import six other modules, among them `math` and `bisect`, whose
    place in the order would be lost.
    """
    number, blocks, holes = disturbance, [], {}
    for _ in range(9_973 * disturbance):
        number = (number * 6364136223846793005 + 1442695040888963407) % 2**64
        block = bytearray((number >> 40) % 480)
        if number >> 63:
            blocks.append(block)
        else:
            holes[number] = block
    for place in sorted(holes):
        del holes[place]
    return blocks


def _error_texts(error: BaseException) -> tuple[str, str, str]:
    """Return the type of an error, its text, and the module whose code raised it."""
    where, traceback = "", error.__traceback__
    while traceback is not None:
        name = traceback.tb_frame.f_globals.get("__name__")
        if isinstance(name, str) and name != "__main__" and "importlib" not in name:
            where = name
        traceback = traceback.tb_next
    kind = type(error)
    named = kind.__qualname__
    if kind.__module__ != "builtins":
        named = f"{kind.__module__}.{named}"
    try:
        return named, str(error), where
    except Exception as second:
        return named, f"<its text raises {type(second).__name__}>", where


def _observer(codes: "Codes") -> "Callable[..., bytes]":
    """Return `observe` of this package, even if users have another `everyorder`."""
    theirs = {
        name: sys.modules.pop(name) for name in list(sys.modules) if _is_own(name)
    }
    finder = _Finder(codes)
    sys.meta_path.insert(0, finder)
    try:
        from everyorder.harness.tools.imports.import_observation import observe
    finally:
        sys.meta_path.remove(finder)
        if theirs:
            for name in [name for name in sys.modules if _is_own(name)]:
                del sys.modules[name]
            sys.modules.update(theirs)
    return observe


class _Finder:
    """Finds the modules of this package that the parent process compiled."""

    def __init__(self, codes: "Codes") -> None:
        self._codes = codes

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return the spec of a module, as for `importlib.abc.MetaPathFinder`."""
        if name not in self._codes:
            return None
        file, is_package, _code = self._codes[name]
        spec = ModuleSpec(
            name,
            self,  # type: ignore[arg-type]  # it has the methods of a loader
            origin=file,
            is_package=is_package,
        )
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(file)]
        spec.has_location = True
        return spec

    def create_module(self, _: ModuleSpec) -> None:
        """Return None, as for `importlib.abc.Loader`."""

    def exec_module(self, module: "ModuleType") -> None:
        """Run the code of a module, as for `importlib.abc.Loader`."""
        exec(self._codes[module.__name__][2], module.__dict__)  # noqa: S102  # ours


def _is_own(name: str) -> bool:
    return name == "everyorder" or name.startswith("everyorder.")


def _run_in_child(
    request: "dict[str, Any]", start: frozenset[str], codes: "Codes"
) -> tuple[str, int, bytes, bytes] | None:
    """Return the result of a child; None if the parent has ended."""
    seen_out, seen_in = os.pipe()
    printed_out, printed_in = os.pipe()
    # Before the child's clock starts: one that reaches its limit is never called dead.
    deadline = time.monotonic() + request["seconds"] + GRACE_SECONDS
    child = os.fork()
    if not child:
        try:
            os.setsid()
            os.close(seen_out)
            os.close(printed_out)
            _redirect(printed_in)
            faulthandler.dump_traceback_later(request["seconds"], exit=True, file=2)
            packed = play(request, start, codes)
            _send(seen_in, len(packed).to_bytes(8, "little") + packed)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(INTERNAL_ERROR)
    os.close(seen_in)
    os.close(printed_in)
    try:
        return _wait_for(child, seen_out, printed_out, deadline)
    finally:
        os.close(seen_out)
        os.close(printed_out)


def _send(target: int, data: bytes) -> None:
    """Write all bytes, also if a module has replaced `os.write`."""
    while data:
        data = data[_write(target, data) :]


def _redirect(printed: int) -> None:
    """Close the input, and redirect both outputs to the pipe `printed`."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.close(nothing)
    os.close(printed)


def _wait_for(
    child: int, seen_out: int, printed_out: int, deadline: float
) -> tuple[str, int, bytes, bytes] | None:
    """Return the kind of end of a child, its exit code, its output and its message."""
    texts = {seen_out: b"", printed_out: b""}
    waited, code, how = {0, seen_out, printed_out}, None, ""
    while not how:
        left = deadline - time.monotonic()
        ready, _, _ = select.select(waited, (), (), max(0.0, min(left, POLL_SECONDS)))
        for pipe in ready:
            data = os.read(pipe, 1 << 16)
            if not pipe:
                _kill(child)
                return None
            if not data:
                waited.discard(pipe)
            texts[pipe] += data
        texts[printed_out] = texts[printed_out][-MOST_PRINTED:]
        sent = texts[seen_out]
        if len(sent) >= 8 and len(sent) - 8 == int.from_bytes(sent[:8], "little"):
            how = "seen"
        elif left <= 0:
            how = "hung"
        elif not ready or waited == {0}:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                left = deadline - time.monotonic()
                how = "hung" if code == 1 and left <= GRACE_SECONDS else "died"
    _kill(child, ended=code is not None)
    return how, code or 0, texts[printed_out], texts[seen_out][8:]


def _kill(child: int, *, ended: bool = False) -> None:
    """Kill the process group of the child, and wait for it unless it has ended."""
    try:
        os.killpg(child, SIGKILL)
    except (ProcessLookupError, PermissionError):
        if not ended:  # it has not yet created its session
            os.kill(child, SIGKILL)
    if not ended:
        os.waitpid(child, 0)


def _play_once(start: frozenset[str], codes: "Codes") -> None:
    """Play one order in this process, on a platform without fork."""
    request = marshal.load(sys.stdin.buffer)  # noqa: S302  # of our parent
    target = os.dup(1)
    os.dup2(2, 1)
    faulthandler.dump_traceback_later(request["seconds"], file=2)
    packed = play(request, start, codes)
    _send(target, packed)
    os._exit(0)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path[0] = sys.argv[1]
    isolation, seeded = sys.argv[2:]
    if seeded:
        del os.environ["PYTHONHASHSEED"]
    sys.argv[:] = ["-c"]
    before = frozenset(sys.modules)
    ours = marshal.loads(marshal.load(sys.stdin.buffer))  # noqa: S302  # of our parent
    if isolation == "fork":
        serve(before, ours)
    else:
        _play_once(before, ours)
