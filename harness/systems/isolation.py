"""Isolation: a separate process for each fresh system of a registry.

State that a registry keeps in the process (module globals, tables of C libraries,
patched classes) is fresh after each reset because the process is: it is forked from a
process in which no operation has run (`isolation="fork"`, POSIX), or started as a new
interpreter ("spawn").  The child creates the system, stores the undo handles by number,
performs one request after the other, and ends with its channel.

Rules:
- answers, observations, states and portraits are values and are sent as such; undo
  handles stay in the child, and the engine holds a token for each;
- an exception that is an outcome is sent as its name and text; errors of the harness
  are sent whole; any other exception is sent as a traceback, because it is a mistake in
  a scenario or in the harness;
- a child that ends by itself is an error (`ProcessError`) that names its operation;
- `kill` ends a child that hangs, from any thread; `close` ends all children;
- only the parent handles Ctrl-C;
- a child exits by `os._exit`, because callbacks at exit belong to the parent; its
  streams are flushed before.
"""

import errno
import gc
import os
import pickle
import signal
import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from traceback import format_exc
from typing import Any
from weakref import finalize, ref

from everyorder.harness.base.errors import (
    ExplorationRestart,
    HarnessError,
    ProcessError,
)
from everyorder.harness.engine.leaks import outlives
from everyorder.harness.engine.protocol import Caveat, ErrorOrigin, StateForm
from everyorder.harness.processes.fork import flush_streams
from everyorder.harness.processes.messages import PipeEnd
from everyorder.harness.processes.zygote import Zygote
from everyorder.harness.scenario.scenario import Scenario
from everyorder.harness.state import Portrait, unique_paths
from everyorder.harness.systems import repeated_warnings
from everyorder.harness.systems.outcomes import (
    ErrorOutcome,
    ScenarioSkipped,
    name_and_text,
    skip_reason,
)
from everyorder.harness.systems.registry import RegistrySystem, ScenarioSystem
from everyorder.harness.systems.spawner import Spawner
from everyorder.harness.systems.state_reader import LearnedState

# The first pickling of an instance stores `__slotnames__` in its class; in a child that
# would be a change outside of the registry.
for _sent in (ErrorOrigin("", 0), StateForm(b"", b""), Caveat("assumed", "")):
    pickle.dumps(_sent)


class ChildServer:
    """Performs requests on one system."""

    def __init__(self, scenario: Scenario, channel: PipeEnd) -> None:
        self._system = RegistrySystem(scenario)
        self._channel = channel
        self._handles: dict[int, Any] = {}
        self._steps: dict[int, int] = {}
        self._last_number = 0

    def serve(self) -> None:
        """Answer requests until the channel ends, or the last one."""
        with suppress(EOFError, BrokenPipeError):
            while True:
                name, *arguments = self._channel.receive()
                method = getattr(self, name, None) or getattr(self._system, name)
                answer = self._answer(method, arguments)
                answer = (*answer, self._system.origins.take_unsent())
                try:
                    self._channel.send(answer)
                except OSError:
                    raise
                except Exception as error:  # a value that cannot be pickled
                    mistake = ("mistake", (*name_and_text(error), format_exc()))
                    self._channel.send(mistake)
                if name == "end":
                    return

    def _answer(self, method: Callable[..., Any], arguments: list[Any]) -> Any:
        try:
            return "value", method(*arguments)
        except HarnessError as error:
            return "error", error
        except BaseException as error:
            # This includes `create`, for which no exception is an outcome.
            reason = skip_reason(error)
            if reason is not None:
                return "error", ScenarioSkipped(reason=reason)
            if not isinstance(error, Exception):
                raise
            # A use raises only if it ends steps.
            if method in (self.do, self.undo, self._system.use):
                # Noted here, where the error has its traceback.
                return "raised", self._system.failure(error)
            return "mistake", (*name_and_text(error), format_exc())

    def reset(self, memory: LearnedState) -> None:
        """Create the system; `memory` is the learned state of earlier ones."""
        repeated_warnings.print_once(memory.warned)
        self._system.remember(memory)
        self._system.reset()

    def do(self, step: int) -> tuple[int, str]:
        """Do a step; return the number of its handle, and the name of its type."""
        handle = self._system.do(step)
        self._last_number += 1
        self._handles[self._last_number] = handle
        self._steps[self._last_number] = step
        return self._last_number, type(handle).__qualname__

    def undo(self, step: int, number: int) -> bool:
        """Undo a step; return True if its handle was freed."""
        handle = self._handles[number]
        watch = _watch(handle)
        self._system.undo(step, handle)
        del self._handles[number], self._steps[number], handle
        return _is_freed(watch)

    def release(self, numbers: list[int], active: int) -> list[bool]:
        """Drop the handles of ended steps; return True for each that was freed."""
        handles = [self._handles.pop(number) for number in numbers]
        for number in numbers:
            del self._steps[number]
        watches = [_watch(each) for each in handles]
        self._system.release(handles, active)
        return [_is_freed(watch) for watch in watches]

    def state(self, numbers: list[int | None]) -> Any:
        """Return the complete state, with the handles of these numbers."""
        return self._system.state(self._handles_of(numbers))

    def portrait(self, numbers: list[int | None]) -> Any:
        """Return the state in a form that can be compared."""
        return self._system.portrait(self._handles_of(numbers))

    def memory(self) -> LearnedState:
        """Return the learned state, which outlives the system."""
        with suppress(ExplorationRestart):  # the memory reports it
            self._system.check_garbage()
        return replace(self._system.memory(), warned=repeated_warnings.printed())

    def end(self) -> LearnedState:
        """Close the system, and return its learned state."""
        self._system.check_outside(self._active())
        memory = self.memory()
        self._handles.clear()
        self._system.close()
        return memory

    def _active(self) -> list[Any]:
        """Return the handles by step, the newest of each."""
        handles: list[Any] = [None] * self._system.steps
        for number, step in self._steps.items():
            handles[step] = self._handles[number]
        return handles

    def _handles_of(self, numbers: list[int | None]) -> list[Any]:
        return [None if each is None else self._handles[each] for each in numbers]


def _watch(handle: object) -> "ref[Any] | None":
    return ref(handle) if type(handle).__weakrefoffset__ else None


def _is_freed(watch: "ref[Any] | None") -> bool:
    """Return False if a dropped handle is still alive."""
    if watch is None or watch() is None:
        return True
    gc.collect()
    return not outlives(watch)


def serve_child(scenario: Scenario, channel: PipeEnd, *, warns: bool = True) -> None:
    """Serve a channel in this process, which ends with it; never returns."""
    status = 1
    try:
        if not warns:
            repeated_warnings.print_none()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.disable()
        ChildServer(scenario, channel).serve()
        status = 0
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else int(bool(exit_.code))
    except KeyboardInterrupt:
        status = 130
    except BaseException:
        sys.stderr.write(format_exc())
    finally:
        flush_streams()
        os._exit(status)


# Children that check the untracked state, at their beginning and at their end: in a
# forked process that copies most of the memory.  The first child often has no
# operations.
CHECKING_CHILDREN = frozenset(2 * 8**n for n in range(12))

# Children of a random walk that check it after their own first performances.
WALKING_CHILDREN = 4


# The commands that raise the limits of a user, by the error at the limit.
_LIMITS = {errno.EMFILE: "ulimit -n", errno.EAGAIN: "ulimit -u"}


class RemoteHandle:
    """The token of an undo handle that is in the child, by number."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class IsolatedSystem(ScenarioSystem):
    """A scenario with `create` and `isolation`, as the engine explores it."""

    isolated = True
    # True if some children check the untracked state.
    _looks = True

    def __init__(self, scenario: Scenario) -> None:
        assert scenario.isolation is not None, "others live in this process"
        super().__init__(scenario)
        self._memory = LearnedState()
        self._source: Zygote | Spawner | None = None
        self._pid = 0
        self._channel: PipeEnd | None = None
        self._ended: list[int] = []
        self._kinds: dict[str, type[RemoteHandle]] = {}
        # Tokens of handles that were not freed: the engine must find them alive.
        self._leaked: list[object] = []
        self._children = 0
        # How many of the next children belong to a random walk.
        self._walking = 0
        # A look may break a law, even without a `check`.
        self._looked = False

    def reset(self) -> None:
        """Create a fresh registry in a fresh process.

        Raises:
            ExplorationRestart: an operation on the last registry requires it.
            ProcessError: the source of children has died, or the system refuses a
                process or its channel.
        """
        thorough = self._memory.thorough
        self._end_child()
        if self._memory.thorough > thorough:
            raise ExplorationRestart(code="OlderGarbage")
        self._leaked.clear()
        try:
            self._pid, self._channel = self._child_source().child(self._ended)
        except EOFError:
            error = self._death_error("reset")
            self.close()  # the next reset starts another source
            raise error from None
        except OSError as refusal:
            raise ProcessError(
                code="CannotStart",
                reason=refusal.strerror or str(refusal),
                limit=_LIMITS.get(refusal.errno or 0, ""),
            ) from None
        finally:
            self._ended = []
        self._children += 1
        looks = self._looks and (
            self._walking > 0 or self._children in CHECKING_CHILDREN
        )
        memory = replace(self._memory, checks_outside=looks)
        if self._walking:
            self._walking -= 1
            # It checks after its own first performances.
            memory = replace(memory, performances={})
        self._request("reset", "reset", memory)

    def _child_source(self) -> Zygote | Spawner:
        """Return the source of children; start it if there is none."""
        if self._source is None:
            spawns = self.scenario.isolation == "spawn"
            self._source = source = (
                Spawner(self.scenario)
                if spawns
                else Zygote(partial(serve_child, self.scenario))
            )
            self._closing = finalize(self, _close, source, os.getpid())
        return self._source

    def do(self, step: int) -> RemoteHandle:
        """Do a step in the child."""
        text = self.scenario.steps[step].text
        number, name = self._request(text, "do", step)
        kind = self._kinds.get(name)
        if kind is None:
            # The engine reports leaks by the name of the handle's type.
            kind = type(name, (RemoteHandle,), {"__slots__": ()})
            self._kinds[name] = kind
        return kind(number)

    def undo(self, step: int, handle: Any) -> None:
        """Undo a step in the child."""
        text = f"the undo of {self.scenario.steps[step].text}"
        if not self._request(text, "undo", step, handle.number):
            self._leaked.append(handle)

    def release(self, handles: list[object], active: int) -> None:
        """Drop the handles of ended steps in the child."""
        numbers = [n for n in _numbers(handles) if n is not None]
        freed = self._request("the end of steps", "release", numbers, active)
        pairs = zip(handles, freed, strict=True)
        self._leaked += [handle for handle, is_freed in pairs if not is_freed]
        self.drop(handles)

    def use(self, use: int) -> Hashable:
        """Perform a use in the child; an exception is an answer, or passes on."""
        answer: Hashable = self._request(self.scenario.uses[use].text, "use", use)
        return answer

    def observe(self) -> Hashable:
        """Return the observation of the child."""
        self._looked = True
        observation: Hashable = self._request("observe", "observe")
        return observation

    def laws(self) -> Sequence[Hashable]:
        """Return the laws that the child's registry breaks."""
        looked, self._looked = self._looked, False
        if self.scenario.check is None and not looked:
            return ()
        broken: Sequence[Hashable] = self._request("check", "laws")
        return broken

    def collect(self) -> None:
        """Collect the child's garbage."""
        self._request("a collection of garbage", "collect")

    def state(self, handles: Sequence[object]) -> Hashable | None:
        """Return the complete state of the child's registry."""
        state: Hashable | None
        state = self._request("reading the state", "state", _numbers(handles))
        return state

    def portrait(self, handles: Sequence[object]) -> object | None:
        """Return the state in a form that `paths` can compare."""
        portrait: object
        portrait = self._request("reading the state", "portrait", _numbers(handles))
        return portrait

    def audit_orders(self) -> None:
        """Audit operations at states that differ in the order of dicts."""
        self._memory = replace(self._memory, orders=True)

    def audit_walk(self) -> None:
        """Let the next children check the untracked state after operations."""
        self._walking = WALKING_CHILDREN

    def caveats(self) -> Sequence[Caveat]:
        """Return the limits of a proof by the states seen so far.

        Raises:
            ExplorationRestart: an operation requires it.
        """
        thorough = self._memory.thorough
        if self._channel is not None:
            self._learn(self._request("reading the state", "memory"))
        if self._memory.thorough > thorough:
            raise ExplorationRestart(code="OlderGarbage")
        return self._memory.caveats

    def set_aside(self, one: object, other: object) -> bool:
        """Leave values out of the state that differ in these, and are new each time."""
        if not isinstance(one, Portrait) or not isinstance(other, Portrait):
            return False
        paths = unique_paths(one, other)
        if not paths.keys() - self._memory.unique.keys():
            return False
        self._end_child()
        self._memory = replace(self._memory, unique={**self._memory.unique, **paths})
        return True

    def kill(self) -> None:
        """Kill the child; the waiting request raises `ProcessError`."""
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """End the child, and the source of children."""
        self._end_child()
        if self._source is not None:
            self._closing()
            self._source = None

    def _request(self, operation: str, name: str, *arguments: Any) -> Any:
        """Send a request to the child; return its answer, or raise its error."""
        assert self._channel is not None, "a system is reset before it is asked"
        try:
            self._channel.send((name, *arguments))
            kind, value, *origins = self._channel.receive()
        except (EOFError, OSError):
            raise self._death_error(operation) from None
        for each in origins:
            self.origins.update(each)
        if kind == "value":
            return value
        if kind == "raised":
            fields = dict(value)
            raise ErrorOutcome(str(fields["error"]), fields["text"], fields=value)
        if kind == "error":
            raise value
        error, text, traceback = value
        raise ProcessError(
            code="ChildFailed",
            operation=operation,
            error=error,
            text=text,
            traceback=traceback.rstrip(),
        )

    def _learn(self, memory: LearnedState) -> None:
        self._memory = replace(
            memory,
            orders=memory.orders or self._memory.orders,
            performances={**self._memory.performances, **memory.performances},
        )
        self.retract(memory.undeclared)

    def _death_error(self, operation: str) -> ProcessError:
        assert self._source is not None, "it had a child"
        status = self._source.status(self._pid)
        self._forget()
        name = ""
        if status < 0:
            try:
                name = signal.Signals(-status).name
            except ValueError:  # a real-time signal has no name
                name = f"signal {-status}"
        code = None if status < 0 else status
        return ProcessError(
            code="ChildDied", operation=operation, exit_code=code, signal=name
        )

    def _end_child(self) -> None:
        """End the child, after it has sent its learned state."""
        if self._channel is None:
            return
        pid = self._pid
        # A child that cannot end in order has nothing to report.
        with suppress(HarnessError):
            self._learn(self._request("the end", "end"))
        if self._channel is not None:
            self._ended.append(pid)
        self._forget()

    def _forget(self) -> None:
        if self._channel is not None:
            self._channel.close()
        self._channel, self._pid = None, 0


class ForkedCopies(IsolatedSystem):
    """A scenario without `isolation`, in processes where nothing was performed.

    They are forked from a copy of the process as it was before the warm-up.
    """

    _looks = False

    def __init__(self, scenario: Scenario) -> None:
        twin = copy(scenario)
        object.__setattr__(twin, "isolation", "fork")
        super().__init__(twin)

    def prepare(self) -> None:
        """Fork the process from which they are forked, unless there is one."""
        if self._source is None:
            # Their warnings are those of the process that they are compared with.
            serve = partial(serve_child, self.scenario, warns=False)
            # The engine has collected and frozen everything already.
            self._source = source = Zygote(serve, collects=False)
            self._closing = finalize(self, _close, source, os.getpid())

    def system(self, memory: LearnedState) -> IsolatedSystem:
        """Return this system, which starts from the knowledge of another one."""
        self._memory = memory
        return self


def _numbers(handles: Sequence[object]) -> list[int | None]:
    return [each.number if isinstance(each, RemoteHandle) else None for each in handles]


def _close(source: Zygote | Spawner, owner: int) -> None:
    """End the children of this process; a forked copy of it has none."""
    if os.getpid() == owner:
        source.close()
