"""npe2: manifests of plugins, registered with a manager of their own."""

from npe2 import PluginManager, PluginManifest

from everyorder import Scenario, steps, use


def manifest(name: str, pattern: str) -> PluginManifest:
    return PluginManifest.model_validate(
        {
            "name": name,
            "contributions": {
                "commands": [
                    {
                        "id": f"{name}.read",
                        "title": "read",
                        "python_name": f"{__name__}:new_manager",
                    }
                ],
                "readers": [
                    {"command": f"{name}.read", "filename_patterns": [pattern]}
                ],
            },
        }
    )


NAMES = {"tiff": "*.tif", "zarr": "*.zarr", "text": "*.txt"}


def new_manager() -> PluginManager:
    return PluginManager()


def register(manager: PluginManager, name: str) -> None:
    manager.register(manifest(name, NAMES[name]))


def unregister(manager: PluginManager, name: str) -> None:
    manager.unregister(name)


def compatible(manager: PluginManager) -> tuple[str, ...]:
    readers = manager.iter_compatible_readers(["picture.tif"])
    return tuple(sorted(each.command for each in readers))


def names(manager: PluginManager) -> tuple[str, ...]:
    return tuple(sorted(each.name for each in manager.iter_manifests()))


scenario = Scenario(
    *steps("register", [*NAMES], register, undo=unregister),
    uses=[use("iter_compatible_readers", compatible), use("iter_manifests", names)],
    create=new_manager,
)
