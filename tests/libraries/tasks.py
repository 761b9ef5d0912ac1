"""Tasks, jobs, commands, plugins and handlers of other libraries."""

from importlib import import_module
from typing import Any

from everyorder import Scenario, steps, use
from tests.libraries.answers import answers

NAMES = ("clean", "report", "send")


def work() -> None:
    """Do nothing."""


def pluggy_manager() -> Scenario:
    import pluggy

    spec, impl = pluggy.HookspecMarker("books"), pluggy.HookimplMarker("books")

    class Specs:
        @spec
        def name(self) -> str:
            """Return a name."""
            raise NotImplementedError

    class Plugin:
        def __init__(self, own: str) -> None:
            self.own = own

        @impl
        def name(self) -> str:
            return self.own

    def create() -> Any:
        manager = pluggy.PluginManager("books")
        manager.add_hookspecs(Specs)
        return manager

    return Scenario(
        *steps(
            "register",
            NAMES,
            lambda manager, name: manager.register(Plugin(name), name) and None,
            undo=lambda manager, name: manager.unregister(name=name),
        ),
        uses=[
            use("hook", lambda manager: sorted(manager.hook.name())),
            use("has_plugin", lambda manager: manager.has_plugin("clean")),
        ],
        create=create,
    )


def fsspec_implementations() -> Scenario:
    from fsspec.spec import AbstractFileSystem

    class Files(AbstractFileSystem):  # type: ignore[misc]  # it need not be installed
        """A file system."""

    # `fsspec` has an attribute of the same name.
    registry = import_module("fsspec.registry")

    def register(table: Any, name: str) -> None:
        registry.register_implementation(f"x-{name}", Files)

    def remove(table: Any, name: str) -> None:
        del registry._registry[f"x-{name}"]

    def create() -> Any:
        registry._registry.clear()
        return registry.registry

    def classes(table: Any) -> tuple[str, ...]:
        def class_of(name: str) -> Any:
            return registry.get_filesystem_class(f"x-{name}").__name__

        return answers(ValueError, class_of, NAMES)

    return Scenario(
        *steps("register_implementation", NAMES, register, undo=remove),
        uses=[use("get_filesystem_class", classes), use("registry", sorted)],
        create=create,
    )


def dramatiq_actors() -> Scenario:
    import dramatiq
    from dramatiq.brokers.stub import StubBroker

    def declare(broker: Any, name: str) -> None:
        dramatiq.actor(work, broker=broker, actor_name=name)

    return Scenario(
        *steps("actor", NAMES, declare, undo=None),
        uses=[
            use(
                "get_declared_actors",
                lambda broker: sorted(broker.get_declared_actors()),
            ),
            use("queues", lambda broker: sorted(broker.get_declared_queues())),
        ],
        create=lambda: StubBroker(middleware=[]),
    )


def huey_tasks() -> Scenario:
    from huey import MemoryHuey

    class Queue:
        """A queue of tasks, and the wrappers of the tasks by name."""

        def __init__(self) -> None:
            self.huey = MemoryHuey("books", immediate=True)
            self.wrappers: dict[str, Any] = {}

        def add(self, name: str) -> None:
            self.wrappers[name] = self.huey.task(name=name)(work)

        def remove(self, name: str) -> None:
            self.wrappers.pop(name).unregister()

    def known(queue: Any) -> tuple[str, ...]:
        registered = queue.huey._registry._registry
        return tuple(name for name in NAMES if any(name in text for text in registered))

    return Scenario(
        *steps("task", NAMES, Queue.add, undo=Queue.remove),
        uses=[
            use("registered", known),
            use("count", lambda queue: len(queue.huey._registry._registry)),
        ],
        create=Queue,
    )


def schedule_jobs() -> Scenario:
    from schedule import Scheduler

    def every(scheduler: Any, name: str) -> Any:
        return scheduler.every(10).minutes.do(work).tag(name)

    def cancel(scheduler: Any, name: str, job: Any) -> None:
        scheduler.cancel_job(job)

    def tagged(scheduler: Any) -> tuple[int, ...]:
        return tuple(len(scheduler.get_jobs(name)) for name in NAMES)

    return Scenario(
        *steps("every", NAMES, every, undo=cancel),
        uses=[
            use("get_jobs", tagged),
            use("has_jobs", lambda scheduler: scheduler.next_run is not None),
        ],
        create=Scheduler,
    )


def apscheduler_jobs() -> Scenario:
    from apscheduler.schedulers.blocking import BlockingScheduler

    def add(scheduler: Any, name: str) -> None:
        scheduler.add_job(work, "interval", hours=1, id=name)

    def remove(scheduler: Any, name: str) -> None:
        scheduler.remove_job(name)

    return Scenario(
        *steps("add_job", NAMES, add, undo=remove),
        uses=[
            use("get_jobs", lambda it: sorted(job.id for job in it.get_jobs())),
            use("get_job", lambda it: it.get_job("clean") is not None),
        ],
        create=lambda: BlockingScheduler(timezone="UTC"),
    )


def transitions_machine() -> Scenario:
    from transitions import Machine

    def add(machine: Any, name: str) -> None:
        machine.add_transition(name, "idle", "idle")

    def remove(machine: Any, name: str) -> None:
        machine.remove_transition(name, "idle", "idle")

    return Scenario(
        *steps("add_transition", NAMES, add, undo=remove),
        uses=[
            use("may", lambda it: [bool(it.get_transitions(n)) for n in NAMES]),
            use("get_triggers", lambda it: "clean" in it.get_triggers("idle")),
        ],
        create=lambda: Machine(states=["idle"], initial="idle", auto_transitions=False),
    )


def click_commands() -> Scenario:
    import click
    from click.testing import CliRunner

    def add(group: Any, name: str) -> None:
        group.add_command(click.Command(name, callback=lambda: click.echo(name)))

    def remove(group: Any, name: str) -> None:
        del group.commands[name]

    def run(group: Any) -> tuple[int, ...]:
        runner = CliRunner()
        return tuple(runner.invoke(group, [name]).exit_code for name in NAMES)

    return Scenario(
        *steps("add_command", NAMES, add, undo=remove),
        uses=[
            use("invoke", run),
            use("commands", lambda group: sorted(group.commands)),
        ],
        create=lambda: click.Group("books"),
    )


def typer_commands() -> Scenario:
    from typer import Typer
    from typer.main import get_group

    def add(app: Any, name: str) -> None:
        app.command(name)(work)

    return Scenario(
        *steps("command", NAMES, add, undo=None),
        uses=[
            use("get_group", lambda app: sorted(get_group(app).commands)),
            use("registered", lambda app: len(app.registered_commands)),
        ],
        create=lambda: Typer(add_completion=False, callback=work),
    )


def loguru_handlers() -> Scenario:
    from loguru._logger import Core, Logger

    class Log:
        """A logger with a core of its own, and the lines of its handlers."""

        def __init__(self) -> None:
            options: Any = (None, 0, False, False, False, False, True, [], {})
            self.logger = Logger(Core(), *options)
            self.lines: list[str] = []

        def add(self, name: str) -> int:
            def sink(message: str) -> None:
                self.lines.append(f"{name}: {message.strip()}")

            return int(self.logger.add(sink, format="{message}"))

        def remove(self, name: str, handler: int) -> None:
            self.logger.remove(handler)

        def info(self) -> tuple[str, ...]:
            self.logger.info("saved")
            lines = tuple(sorted(self.lines))
            self.lines.clear()
            return lines

    return Scenario(
        *steps("add", NAMES, Log.add, undo=Log.remove),
        uses=[
            use("info", Log.info),
            use("handlers", lambda log: len(log.logger._core.handlers)),
        ],
        create=Log,
    )
