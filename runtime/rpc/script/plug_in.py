"""The plug-in: the parts of remote calls for each area of the compiler.

    plug_in            adds remote calls to programs; returns a handle with `close`
    plug_in_workers    the same for the worker of this process

The plug-in does not load the compiler: an area that is not loaded yet receives its part
at the end of its import (`runtime.base.hooks`).
"""

from collections.abc import Iterable

from everyorder.runtime.base.hooks import PlugIn, register_plug_in
from everyorder.runtime.base.registry import Closeable
from everyorder.runtime.rpc.script.surface import Surface


class PlugIns(Closeable):
    """The registered parts of the plug-in; `close` removes all of them."""

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
        """Remove all parts; idempotent."""
        while self._parts:
            self._parts.pop().close()


def plug_in(surface: Surface) -> PlugIns:
    """Add remote calls to programs."""

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
    """Add remote calls to programs, made by the worker of this process.

    The plug-in is added when the module of remote calls is imported: before that,
    programs cannot name a remote call.
    """

    def install() -> Iterable[Closeable]:
        from everyorder.runtime.rpc.script import remote_execution

        yield plug_in(remote_execution.SURFACE)
        yield from remote_execution.install_profiler_scopes()

    return PlugIns(
        [register_plug_in("everyorder.runtime.rpc.api.remote_calls", "script", install)]
    )
