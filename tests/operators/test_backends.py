"""Backends: where kernels are found, and that they load once, by one thread."""

from types import SimpleNamespace

import pytest

from runtime.operators import produce
from runtime.operators.produce import KEYS, MODULES, table_for, table_of
from runtime.schema.codes import Device
from tests.tensors.loading import noted


def test_a_table_loads_once_by_one_thread_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {"add": None}
    asked = noted(monkeypatch, SimpleNamespace(KERNELS=table))
    monkeypatch.setattr(produce, "_TABLES", {})
    assert table_of("CPU") is table_of("CPU") is table
    parents = ("runtime", "runtime.kernels", "runtime.kernels.cpu")
    assert asked == [(name, True) for name in parents]


def test_meta_has_no_kernels() -> None:
    assert MODULES["Meta"] is None
    with pytest.raises(AssertionError, match="Meta runs no kernels"):
        table_of("Meta")


def test_a_device_type_without_kernels_computes_in_host_memory() -> None:
    assert {KEYS[kind] for kind in ("cpu", "cuda", "meta")} == set(MODULES)
    assert table_for(Device("xpu", 0)) is table_for(Device("cpu")) is table_of("CPU")
