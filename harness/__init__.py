"""The harness: plays every order of registrations and reports what was proven.

The public names are listed once, in the stub beside this file, and load when they are
first used: a pytest plugin must cost nothing to projects that do not use it.
"""

import lazy_loader

__getattr__, _, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __dir__() -> list[str]:
    from everyorder.harness import scenario

    unlisted = {*scenario.__all__}.difference(dir(scenario))
    return [name for name in __all__ if name not in unlisted]
