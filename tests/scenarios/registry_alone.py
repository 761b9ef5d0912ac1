"""The registry class, loaded a second time as a module of a package of its own.

The state of a scenario is followed through all of the package of its registry.  As a
part of `everyorder.runtime` that would be every table and compiled kernel that other
tests have loaded: two minutes instead of seconds, and what Numba holds cannot be read.
"""

import importlib.util
import sys
from typing import Any

from everyorder.runtime.base import registry

_spec: Any = importlib.util.spec_from_file_location("registry_alone", registry.__file__)
_module: Any = importlib.util.module_from_spec(_spec)
# Dataclasses look their module up.
sys.modules["registry_alone"] = _module
_spec.loader.exec_module(_module)

Registry: Any = _module.Registry
sequence: Any = _module.sequence
