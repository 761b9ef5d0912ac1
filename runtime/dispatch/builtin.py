"""The fallbacks that every dispatcher starts with.

True only here: which keys a call passes when nothing handles them.  They are
registered through a public `Library`, once; a state is a value, so every dispatcher
can start from that one.

Whoever registers a fallback of its own for one of these keys has it released first
(`release`); the runtime does so on the default dispatcher for the Autograd keys.
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

# Empty: there is nothing built in to start with until the last line of this.
_first = Dispatcher()
_library = Library("_", "IMPL", dispatcher=_first, origin="built in")
_TOKENS = {
    key: _library.fallback(fallthrough, key).tokens
    for key in (*PASSED, *(key.name for key in AUTOCAST_KEYS))
}
BUILTIN.append(_first.snapshot())


def release(dispatcher: Dispatcher, key: str) -> None:
    """Take the built-in fallback of one name of `PASSED` off a dispatcher.

    Nothing happens if it was taken off before, or never was there.
    """
    live = dispatcher.snapshot().fallbacks.tokens
    tokens = [token for token in _TOKENS[key] if token in live]
    if tokens:
        dispatcher.unregister(tokens)
