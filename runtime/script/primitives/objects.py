"""Objects: what values of any type have: an identity, a hash, and equality of a few.

True only here: `is`, `hash`, and what there is of values that have no chapter.

Rules:
- `is` compares identity, which is that of Python's objects: of small ints it is what
  CPython makes of them;
- the hash of a str differs from one process to the next, and that of a tensor is its
  identity: `hash` is marked as not deterministic, so that no pass computes it early.
"""

import operator
from collections.abc import Iterator

from runtime.autograd.modes import is_grad_enabled
from runtime.schema.device import Device
from runtime.script.primitives.row import Row, Way, attribute, binary, call, row

_HASHED = "1; 1.0; True; 'a'; None; (1, 'a'); 1j; [1]; nan; T0; MOST; -1"


def _device(type: str, index: int | None = None) -> Device:  # noqa: A002  # the field's own word
    return Device.parse(type if index is None else f"{type}:{index}")


def _rows() -> Iterator[Row]:
    samples = "T0, T0; T0, T1; None, None; True, None; 'a', None"
    schema = "is_.t(t a, u b) -> bool"
    yield row(schema, binary("is"), operator.is_, samples)
    schema = "is_not.t(t a, u b) -> bool"
    yield row(schema, binary("is not"), operator.is_not, samples)
    samples = "device('cpu'), device('cpu'); device('cuda:1'), device('cuda:0')"
    for symbol, name, function in (
        ("==", "eq", operator.eq),
        ("!=", "ne", operator.ne),
    ):
        schema = f"{name}.Device(Device a, Device b) -> bool"
        yield row(schema, binary(symbol), function, samples)
    samples = "'cpu'; 'cuda', 1; 'cuda:1'; 'cuda:x'"
    way = Way("function", Device, "device")
    schema = "device.text(str type, int? index=None) -> Device"
    yield row(schema, way, _device, samples, raises=True)
    for name, result, get in (
        ("type", "str", operator.attrgetter("type")),
        ("index", "int?", operator.attrgetter("index")),
    ):
        schema = f"{name}.Device(Device self) -> {result}"
        samples = "device('cpu'); device('cuda:1')"
        yield row(schema, attribute(name), get, samples)
    tags = ("nondeterministic_seeded",)
    way = Way("function", is_grad_enabled, "is_grad_enabled")
    # No constant: a `with` around it decides.
    yield row("is_grad_enabled.mode() -> bool", way, is_grad_enabled, "", tags=tags)
    schema = "hash.t(t object) -> int"
    yield row(schema, call(hash), hash, _HASHED, raises=True, tags=tags)


ROWS = tuple(_rows())
