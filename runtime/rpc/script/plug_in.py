"""The plug-in: what programs get of remote calls, by the area of the compiler.

    plug_in            lets programs have remote calls; returns a handle with `close`
    plug_in_workers    the same for the worker of this process

Nothing of the compiler is loaded for it: an area that is not loaded gets its part at
the end of its own loading (`runtime.base.hooks`).
"""

from collections.abc import Iterable

from everyorder.runtime.base.hooks import PlugIn, register_plug_in
from everyorder.runtime.base.registry import Closeable
from everyorder.runtime.rpc.script.surface import Surface


class PlugIns(Closeable):
    """The parts of the plug-in; `close` takes all of them back."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Iterable[PlugIn]) -> None:
        self._parts: list[PlugIn] = []
        try:
            for each in parts:
                self._parts.append(each)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Take everything back; doing so again is harmless."""
        while self._parts:
            self._parts.pop().close()


def plug_in(surface: Surface) -> PlugIns:
    """Let programs have remote calls."""

    def emission() -> Iterable[Closeable]:
        from everyorder.runtime.rpc.script.remote_forms import install

        return install(surface)

    def executor() -> Iterable[Closeable]:
        from everyorder.runtime.rpc.script.remote_execution import install

        return install(surface)

    def archive() -> Iterable[Closeable]:
        from everyorder.runtime.rpc.script.remote_nodes import install_in_text

        return install_in_text(surface)

    def frontend() -> Iterable[Closeable]:
        from everyorder.runtime.rpc.script.remote_nodes import install_in_reference

        return install_in_reference()

    parts = (emission, executor, archive, frontend)
    return PlugIns(
        register_plug_in(
            f"everyorder.runtime.script.{install.__name__}", "remote calls", install
        )
        for install in parts
    )


def plug_in_workers() -> PlugIns:
    """Let programs have remote calls by the worker of this process.

    The plug-in is added when the module of remote calls has been imported: before, no
    program can name one.
    """

    def install() -> Iterable[Closeable]:
        from everyorder.runtime.rpc.script import remote_execution

        yield plug_in(remote_execution.SURFACE)
        yield from remote_execution.install_profiler_scopes()

    return PlugIns(
        [register_plug_in("everyorder.runtime.rpc.api.remote_calls", "script", install)]
    )
