"""What weak proxies point at, found without asking it anything.

True only here: what is done to a proxy is done to what it points at; its own is nothing
but a repr, which tells an address.  The object there is looked for among all that the
collector knows.  It does not list what it was told to leave alone: that is thawed, and
whoever froze it may want to do so again (`thaws`).
"""

import gc
import re
import weakref
from typing import Any

from harness.heap.known import ABSENT

PROXIES: tuple[type, ...] = (weakref.ProxyType, weakref.CallableProxyType)
_PROXIES = frozenset(map(id, PROXIES))
_ADDRESS = re.compile(r"0x([0-9a-fA-F]+)")

# What proxies point at, by its address.
_targets: dict[int, "weakref.ref[Any]"] = {}
# Proxies, and addresses, of what the collector does not know.
_unknown: set[tuple[int, int]] = set()
_thaws = 0


def proxied(o: Any) -> int | None:
    """The id of what a weak proxy points at, or None where that is dead.

    A proxy's repr asks nothing of the target.  That of a dead one tells its own address
    alone, or that of None; a class may be called as it likes.
    """
    kind: Any = type(o)
    text: str = kind.__repr__(o)
    addresses = _ADDRESS.findall(text)
    address = int(addresses[-1], 16)
    return None if len(addresses) == 1 or address == id(None) else address


def target(o: Any, address: int) -> Any:
    """What a live proxy points at, at this address; `ABSENT` if it cannot be had."""
    found = _known(address)
    if found is None and (id(o), address) not in _unknown:
        # It takes long where much is loaded, so that all are looked for at once.
        _look_for_all()
        found = _known(address)
        if found is None:
            _unknown.add((id(o), address))
    return ABSENT if found is None else found


def thaws() -> int:
    """How often all was thawed that collections were to leave alone."""
    return _thaws


def _known(address: int) -> Any:
    known = _targets.get(address)
    return None if known is None else known()


def _look_for_all() -> None:
    global _thaws
    if gc.get_freeze_count():
        _thaws += 1
        gc.unfreeze()
    every = gc.get_objects()
    proxies = (each for each in every if id(type(each)) in _PROXIES)
    wanted = set(map(proxied, proxies))
    _targets.clear()
    _unknown.clear()
    for each in every:
        if id(each) in wanted:
            _targets[id(each)] = weakref.ref(each)
