"""The C functions that operations call, and those among them that may hide state.

A C function can keep state in a place that no object shows: `_codecs.register` appends
to a list of the interpreter, `time.time` reads a clock, `id` returns an address.  The
canonical form does not contain such state.  So one pass over the operations is played
under a profiler, which lists the called C functions; a function that is not known to be
pure is an assumption of any proof.

Rules:
- *pure* means: keeps and reads only objects that the canonical form sees.  A `dict.pop`
  is pure, though it changes the dict;
- PURE in `pure_functions.py` lists all pure functions; every other one is impure;
- calls from frames of the harness, of pytest and of an event loop are not calls of the
  operations;
- an installed profiler is left alone, and then the calls are unknown.

How it works: `sys.setprofile` reports each call of a C function with the calling frame.
Calls from C to C are not reported (`map(time.time, ...)`), so each Python function that
runs is read once as well: a C function that it loads without calling it itself counts
as called.  A C function that is read from an object (`map(TABLE["now"], ...)`) is in
the canonical form, and `names_of` returns those that hide state.  Calls of types
(`count()`) are not reported either; their state is in their instances, which the
canonical form shows or reports as opaque.  A `methodcaller` calls a method by name: it
counts as a C function that hides state, and so does a module of the standard library
that is passed on, as by `getattr(os, name)`.
"""

import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    TracebackType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple, Self
from weakref import ref

from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.state.code_reads import (
    ADAPTIVE,
    ENVIRONMENT,
    compares_identity,
    handles_encoding,
    hidden_attributes,
    is_class,
    is_of_memory,
    memory_of,
    named_by,
    named_functions,
    passed_modules,
    reads_environment,
)
from everyorder.harness.state.code_value import read_code
from everyorder.harness.state.executed_code import ExecutedCode
from everyorder.harness.state.layout import (
    Memo,
    is_library_file,
    module_dict,
    mro_of,
    namespace_of,
    qualname_of,
    raw_module_of,
)
from everyorder.harness.state.pure_functions import (
    CHANCE,
    MACHINERY,
    SOUND_IN_HASH,
    is_pure,
    sound_in,
)
from everyorder.harness.state.scope import package_of

_HARNESS = str(Path(__file__).parents[1])
_IMPORTER = ("<frozen importlib", "<frozen zipimport")
_DESCRIPTORS = (MethodDescriptorType, ClassMethodDescriptorType, WrapperDescriptorType)
_NOTHING = "nothing was played under the audit"
_ABC_CHECKS = frozenset({"_abc._abc_instancecheck", "_abc._abc_subclasscheck"})
# Hits and misses are only read of caches that are followed.
_HITS = "_lru_cache_wrapper.cache_info"
# Modules by their usual names.
_SHOWN = {"posix": "os", "nt": "os", "_io": "io"}
_C_METHODS = (
    MethodDescriptorType,
    ClassMethodDescriptorType,
    BuiltinFunctionType,
    staticmethod,
)
_CALLS = "calls "
_ASSUMED_IDENTITY = Caveat("assumed", "no `is` distinguishes two equal values")
_BY_CHANCE = ", which answers by chance"


class _Caller(NamedTuple):
    """Code that calls: the impure calls allowed to it, or None if none of them counts.

    `rereads` means that names in its globals may be bound again by the program, and
    `imports` that it imports a module, whose name is a variable of its frame.
    """

    code: "ref[CodeType]"
    sound: frozenset[str] | None
    rereads: bool
    imports: bool


class CallAudit:
    """Lists the C functions called while it is entered; it may be entered repeatedly.

    It holds names only.  An audit is not `complete` if a profiler was installed
    already, or if an operation replaced its profiler; then its caveats report that.
    """

    def __init__(self) -> None:
        # If there is one, it is recording, or all is known.
        self.executed: ExecutedCode | None = None
        self._calls: set[str] = set()
        self._impure: set[str] = set()
        # True if code compares by `is` what may be equal values.
        self._compares = False
        self._gap = _NOTHING
        # By address of code; what code of the program loads is read in each context.
        self._callers: dict[int, _Caller] = {}
        self._read: set[int] = set()
        # Names and digests of all code of the program that ran; code may be made anew
        # by each operation.
        self._ran: set[tuple[str, bytes]] = set()
        self._runs_new = False
        self._hook: Callable[[FrameType, str, Any], None] | None = None
        self._outer: Any = None

    def __enter__(self) -> Self:
        profiler = sys.getprofile()
        self._outer = None if self.executed is None else self.executed.hook
        if profiler is None or profiler is self._outer:
            self._outer = profiler
            if self._gap == _NOTHING:
                self._gap = ""
            # One object for both uses: each access creates another bound method.
            self._hook = self._event
            self._assume(*_hooks())
            sys.setprofile(self._hook)
        else:
            self._hook = None
            self._gap = "a profiler is installed"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._hook is not None:
            if sys.getprofile() is self._hook:
                sys.setprofile(self._outer)
            else:
                self._gap = "an operation replaced the profiler"
            self._hook = None
        self._read.clear()

    def count(self, function: object) -> None:
        """Count an operation that is a C function itself; any other is ignored.

        The harness calls it, so the profiler attributes the call to the harness.
        """
        while type(function) is partial:
            function = function.func
        if type(function) is BuiltinFunctionType:
            name, pure = _identify(function)
            self._calls.add(name)
            if not pure:
                self._impure.add(name)

    def take_new_code(self) -> bool:
        """Return True once after code ran for the first time."""
        ran, self._runs_new = self._runs_new, False
        return ran

    def forget_code(self) -> None:
        """Forget which code ran."""
        self._callers.clear()
        self._ran.clear()
        self._runs_new = False

    @property
    def complete(self) -> bool:
        """Return True if every call of the played operations was recorded."""
        return not self._gap

    def calls(self) -> tuple[str, ...]:
        """Return the names of all called C functions, sorted."""
        return tuple(sorted(self._calls))

    def impure_calls(self) -> tuple[str, ...]:
        """Return the called functions that are not known to be pure, sorted."""
        return tuple(sorted(self._impure))

    def caveats(self) -> tuple[Caveat, ...]:
        """Return the assumptions of a proof in one line; none if all calls are pure.

        With random results there is no proof: the caveat is `outside`.
        """
        why_not = self._gap and (
            f"C functions that hide state were not audited: {self._gap}"
        )
        identity = [_ASSUMED_IDENTITY] if self._compares else []
        return (*caveats_of(self._impure, why_not), *identity)

    def _event(self, frame: FrameType, event: str, arg: Any) -> None:
        """Handle one event of the profiler."""
        if event == "c_call" or event == "call":
            code = frame.f_code
            if event == "c_call" and self.executed is not None:
                self.executed.note_call(arg, code)
            caller = self._callers.get(id(code))
            if caller is None or caller.code() is not code:
                caller = self._meet(frame, begins=event == "call")
            elif event == "call" and caller.rereads and id(code) not in self._read:
                self._note_reads(frame, caller)
            if caller.imports:
                self._note_import(frame)
            elif event == "c_call" and caller.sound is not None:
                self._record(arg, caller.sound, frame)

    def _meet(self, frame: FrameType, *, begins: bool) -> "_Caller":
        """Judge code that calls for the first time, and record what it reads.

        Of a frame that began before the audit, which is not the program's, nothing is
        read.  The code itself is not kept alive: an operation may have made it.
        """
        code, sound = frame.f_code, _judge(frame)
        importer = code.co_filename.startswith(_IMPORTER)
        caller = _Caller(
            ref(code),
            sound,
            rereads=sound is not None and not is_library_file(code.co_filename),
            imports=importer and code.co_name == "_find_and_load_unlocked",
        )
        if begins:
            self._callers[id(code)] = caller
            if self.executed is not None:
                self.executed.note(code)
            if sound is not None:
                mark = code.co_qualname, read_code(code).digest
                self._runs_new = self._runs_new or mark not in self._ran
                self._ran.add(mark)
                self._note_reads(frame, caller)
        return caller

    def _note_reads(self, frame: FrameType, caller: "_Caller") -> None:
        """Record the names that code loads; they may be bound again at a state."""
        self._read.add(id(frame.f_code))
        sound = caller.sound or frozenset()
        for function, is_called in named_functions(frame):
            if type(function) is FunctionType:
                if caller.rereads:
                    self._note_library(function)
            # What the library calls is known when it is called.
            elif (caller.rereads or not is_called) and not _identify(function)[1]:
                self._record(function, sound, frame)
        if reads_environment(frame.f_code):
            self._assume(ENVIRONMENT)
        elif caller.rereads and compares_identity(frame):
            self._compares = True
        memory = is_of_memory(frame)
        if memory:
            self._assume(memory)
        hidden = hidden_attributes(frame.f_code)
        # By functions of `dis`.
        if caller.rereads or ADAPTIVE in hidden:
            self._assume(*hidden)
        if caller.rereads:
            self._assume(*memory_of(frame))
            if handles_encoding(frame.f_code):
                self._assume("codecs.register_error")
            for module in passed_modules(frame):
                if _holds_impure(module):
                    name = module_dict(module)["__name__"]
                    self._assume(f"a function of {name} by a computed name")

    def _assume(self, *names: str) -> None:
        self._calls.update(names)
        self._impure.update(names)

    def _note_library(self, function: FunctionType) -> None:
        """Record the C functions that a function of the library calls by itself."""
        if reads_environment(function.__code__):
            self._assume(ENVIRONMENT)
        if not is_library_file(function.__code__.co_filename):
            return
        self._assume(*hidden_attributes(function.__code__))
        sound = sound_in(function.__module__)
        for called, _ in named_by(function):
            if type(called) is not FunctionType:
                name, pure = _identify(called)
                if not pure and name not in sound:
                    self._assume(name)

    def _note_import(self, frame: FrameType) -> None:
        name = frame.f_locals.get("name")
        if name is not None:
            self._assume(f"__import__({name!r})")

    def _record(self, function: Any, sound: frozenset[str], frame: FrameType) -> None:
        name, pure = _identify(function)
        self._calls.add(name)
        if (
            (not pure and name not in sound)
            or (name in _ABC_CHECKS and _has_hook(frame.f_locals.get("cls")))
            or (name == _HITS and _is_foreign(function, frame))
        ):
            self._impure.add(name)


def caveats_of(names: Iterable[str], more: str = "") -> tuple[Caveat, ...]:
    """Return caveats for calls of impure functions, and for the assumption `more`."""
    impure = set(names)
    chance = sorted(impure & CHANCE)
    hiding = sorted(impure - CHANCE)
    texts = [f"{_CALLS}{', '.join(hiding)}"] if hiding else []
    if more:
        texts.append(more)
    caveats = [Caveat("assumed", "; ".join(texts))] if texts else []
    if chance:
        text = f"{_CALLS}{', '.join(chance)}{_BY_CHANCE}"
        caveats.append(Caveat("outside", text))
    return tuple(caveats)


def merge_caveats(caveats: Iterable[Caveat]) -> tuple[Caveat, ...]:
    """Return caveats without repetition, and all calls in one line of each kind.

    The caveats are of the audit, the objects, and other processes.
    """
    merged: dict[Caveat, None] = {}
    names: set[str] = set()
    for each in caveats:
        call_list, _, more = each.text.partition("; ")
        if not call_list.startswith(_CALLS):
            merged[each] = None
            continue
        call_list = call_list.removeprefix(_CALLS).removesuffix(_BY_CHANCE)
        names.update(call_list.split(", "))
        if more:
            merged[Caveat(each.kind, more)] = None
    return (*merged, *caveats_of(names))


def names_of(functions: Iterable[Any]) -> frozenset[str]:
    """Return the names of those C functions that are not known to be pure."""
    identities = map(_identify, functions)
    return frozenset([name for name, pure in identities if not pure])


@contextmanager
def pause_call_audit() -> Iterator[None]:
    """Do not record the calls of the harness in this context.

    The profiler is left installed if it is not an audit's: one that is written in C
    could not be installed again.
    """
    hook = sys.getprofile()
    if type(getattr(hook, "__self__", None)) is not CallAudit:
        yield
        return
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(hook)


def _identify(function: Any) -> tuple[str, bool]:
    """Return the name of a C function, and True if PURE lists it."""
    if function is operator.methodcaller:
        return "operator.methodcaller", False
    if type(function) in _DESCRIPTORS:
        return _of_type(function.__objclass__, function.__name__)
    owner = function.__self__
    name = function.__name__
    if owner is None or type(owner) is ModuleType:
        module = function.__module__
        if type(module) is not str:
            module = "?"
        place = "" if module == "builtins" else f"{_SHOWN.get(module, module)}."
        return f"{place}{name}", is_pure(module, name)
    kinds = (owner, type(owner)) if is_class(owner) else (type(owner),)
    for kind in kinds:
        for base in mro_of(kind):
            if type(namespace_of(base).get(name)) in _C_METHODS:
                return _of_type(base, name)
    return _of_type(type(owner), name)


def _of_type(kind: type, name: str) -> tuple[str, bool]:
    module, method = raw_module_of(kind), f"{qualname_of(kind)}.{name}"
    return method, type(module) is str and is_pure(module, method)


def _judge(frame: FrameType) -> frozenset[str] | None:
    """Return the impure calls allowed to a frame; None if its calls do not count."""
    file = frame.f_code.co_filename
    if file.startswith((_HARNESS, *_IMPORTER)):
        return None
    module = dict.get(frame.f_globals, "__name__")
    if type(module) is not str:
        return frozenset()
    if module in MACHINERY or package_of(module) in MACHINERY:
        return None
    if frame.f_code.co_name == "__hash__":
        return SOUND_IN_HASH
    return sound_in(module) if is_library_file(file) else frozenset()


def _hooks() -> list[str]:
    """Return the functions by which the program installed its own hooks.

    Those of installed packages measure or debug, or belong to an event loop.
    """
    of_generators = sys.get_asyncgen_hooks()
    hooks: list[tuple[str, object]] = [("sys.settrace", sys.gettrace())]
    hooks += [("sys.set_asyncgen_hooks", each) for each in of_generators]
    names: list[str] = []
    for name, hook in hooks:
        function: Any = hook.__func__ if type(hook) is MethodType else hook
        if type(function) is FunctionType:
            file = function.__code__.co_filename
            standard = is_library_file(file) and not file.startswith("<frozen ")
            if not ("-packages" in file or standard or file.startswith(_HARNESS)):
                names.append(name)
    return names


def _is_foreign(method: Any, frame: FrameType) -> bool:
    """Return True for a method of a cache that is not of the caller's package."""
    wrapper = getattr(method, "__self__", None)
    module = getattr(wrapper, "__dict__", {}).get("__module__")
    caller = dict.get(frame.f_globals, "__name__")
    if type(module) is not str or type(caller) is not str:
        return True
    return package_of(module) != package_of(caller)


def _read_holds_impure(module: ModuleType) -> bool:
    """Return True if a function of a module is a C function that hides state."""
    return any(
        type(each) is BuiltinFunctionType and not _identify(each)[1]
        for each in module_dict(module).values()
    )


_holds_impure = Memo(_read_holds_impure)


def _has_hook(kind: Any) -> bool:
    """Return True if an ABC has a `__subclasshook__` of a user, which may change."""
    if not is_class(kind):
        return False
    for base in mro_of(kind):
        hook = namespace_of(base).get("__subclasshook__")
        if hook is not None:
            inner = hook.__func__ if type(hook) is classmethod else hook
            return type(inner) is FunctionType and not is_library_file(
                inner.__code__.co_filename
            )
    return False
