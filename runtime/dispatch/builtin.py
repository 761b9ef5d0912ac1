"""The fallbacks that every dispatcher starts with.

True only here: which keys a call passes when nothing handles them.  They are
registered through a public `Library`, once; a state is a value, so every dispatcher
can start from that one.

Autograd keys fall through until the autograd area is imported, which installs its own
state behind this one (see `runtime.dispatch.dispatcher.BUILTIN`).
"""

from runtime.dispatch.dispatcher import BUILTIN, Dispatcher
from runtime.dispatch.kernel import fallthrough
from runtime.dispatch.library import Library
from runtime.keys import AUTOCAST_KEYS

# BackendSelect and ADInplaceOrView are included in every call; autocast keys are on
# every tensor; the vmap modes are entered for the whole thread.
PASSED = (
    "BackendSelect",
    "ADInplaceOrView",
    "Autograd",
    "FuncTorchVmapMode",
    "VmapMode",
)

_empty = Dispatcher(builtin_fallbacks=False)
_library = Library("_", "IMPL", dispatcher=_empty, origin="built in")
for _key in (*PASSED, *(key.name for key in AUTOCAST_KEYS)):
    _library.fallback(fallthrough, _key)
BUILTIN.append(_empty.snapshot())
