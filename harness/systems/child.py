"""A process that holds one fresh system and does what it is told.

True only here: the child's side of `harness.systems.isolated`.  It makes the system,
keeps the undo handles by number, performs one request after the other, and ends with
its channel.  Values cross as they are; handles stay here.

Rules:
- an exception that is an outcome crosses as its name and text; errors of the harness
  cross whole; anything else crosses as a traceback, for it is somebody's mistake;
- Ctrl-C is the parent's affair;
- a child leaves by `os._exit`, because what would run at exit is the parent's; what
  was printed is flushed before.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from traceback import format_exc
from typing import Any
from weakref import ref

from harness.engine.runner import outlives
from harness.errors import HarnessError
from harness.scenario.scenario import Scenario
from harness.systems.channel import Channel
from harness.systems.collector import OlderGarbage
from harness.systems.complete import Memory
from harness.systems.outcomes import ScenarioSkipped, skip_reason, told_of
from harness.systems.registry import RegistrySystem


class Child:
    """Performs requests on one system."""

    def __init__(self, scenario: Scenario, channel: Channel) -> None:
        self._system = RegistrySystem(scenario)
        self._channel = channel
        self._handles: dict[int, Any] = {}
        self._steps: dict[int, int] = {}
        self._made = 0

    def serve(self) -> None:
        """Answer requests until the channel ends, or the last one."""
        with suppress(EOFError, BrokenPipeError):
            while True:
                name, *arguments = self._channel.receive()
                answer = self._answer(getattr(self, name), arguments)
                try:
                    self._channel.send(answer)
                except OSError:
                    raise
                except Exception as error:  # a value that cannot be pickled
                    told = ("mistake", (*told_of(error), format_exc()))
                    self._channel.send(told)
                if name == "end":
                    return

    def _answer(self, method: Callable[..., Any], arguments: list[Any]) -> Any:
        try:
            return "value", method(*arguments)
        except HarnessError as error:
            return "error", error
        except BaseException as error:
            # Of what makes a registry as well, where no exception is an outcome.
            reason = skip_reason(error)
            if reason is not None:
                return "error", ScenarioSkipped(reason=reason)
            if not isinstance(error, Exception):
                raise
            if method in (self.do, self.undo):
                return "raised", told_of(error)
            return "mistake", (*told_of(error), format_exc())

    def reset(self, memory: Memory) -> None:
        """Make the system; `memory` is what others like it have learnt."""
        self._system.remember(memory)
        self._system.reset()

    def do(self, step: int) -> tuple[int, str]:
        """Do a step: the number of its handle, and the name of its type."""
        handle = self._system.do(step)
        self._made += 1
        self._handles[self._made] = handle
        self._steps[self._made] = step
        return self._made, type(handle).__qualname__

    def undo(self, step: int, number: int) -> bool:
        """Undo a step; whether its handle is gone."""
        handle = self._handles[number]
        watch = ref(handle) if type(handle).__weakrefoffset__ else None
        self._system.undo(step, handle)
        del self._handles[number], self._steps[number], handle
        if watch is None or watch() is None:
            return True
        gc.collect()
        return not outlives(watch)

    def use(self, use: int) -> Any:
        """Perform a use: its answer."""
        return self._system.use(use)

    def observe(self) -> Any:
        """What is observed."""
        return self._system.observe()

    def laws(self) -> Any:
        """The laws that are broken."""
        return self._system.laws()

    def collect(self) -> None:
        """Collect garbage."""
        self._system.collect()

    def state(self, numbers: list[int | None]) -> Any:
        """The complete state, with the handles of these numbers."""
        return self._system.state(self._found(numbers))

    def portrait(self, numbers: list[int | None]) -> Any:
        """The state in a form that can be compared."""
        return self._system.portrait(self._found(numbers))

    def memory(self) -> Memory:
        """What was learnt that outlives the system."""
        with suppress(OlderGarbage):  # the memory tells it
            self._system.check_garbage()
        return self._system.memory()

    def end(self) -> Memory:
        """End what the system keeps; what was learnt."""
        self._system.look(self._active())
        memory = self.memory()
        self._handles.clear()
        self._system.close()
        return memory

    def _active(self) -> list[Any]:
        """The handles by step, the newest of each."""
        found: list[Any] = [None] * self._system.steps
        for number, step in self._steps.items():
            found[step] = self._handles[number]
        return found

    def _found(self, numbers: list[int | None]) -> list[Any]:
        return [None if each is None else self._handles[each] for each in numbers]


def become_child(scenario: Scenario, channel: Channel) -> None:
    """Serve a channel in this process, which ends with it; never returns."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.disable()
        Child(scenario, channel).serve()
        status = 0
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else int(bool(exit_.code))
    except KeyboardInterrupt:
        status = 130
    except BaseException:
        sys.stderr.write(format_exc())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(status)
