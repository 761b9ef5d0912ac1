"""Registries: duplicates, orders, handles, threads, forks, interrupted imports."""

import gc
import sys
import threading
from collections.abc import Callable
from importlib import import_module, invalidate_caches
from itertools import permutations, product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from everyorder.runtime.base.registry import (
    _LOCK,
    Registry,
    RegistryHandle,
    keys_of,
    sequence,
)
from everyorder.runtime.errors.registration import AlreadyRegistered
from tests.forking import in_child, needs_fork

HERE = __file__


def line_after(marker: str) -> str:
    """Return `file:line` of the line behind the comment `# marker`."""
    lines = Path(HERE).read_text().splitlines()
    return f"{HERE}:{lines.index(f'    # {marker}') + 2}"


def stages() -> Registry[str, int]:
    return Registry("stages", order=sequence("modules", "exceptions", "classes"))


def test_a_row_is_read_until_its_handle_is_closed() -> None:
    registry: Registry[str, int] = Registry("numbers", {"zero": 0}, order=str)
    before = registry.rows
    with registry.register("one", 1) as handle:
        assert dict(registry.rows) == {"one": 1, "zero": 0}
    assert dict(registry.rows) == {"zero": 0}
    handle.close()
    assert (dict(registry.rows), dict(before)) == ({"zero": 0}, {"zero": 0})


def test_published_rows_are_replaced_and_never_changed() -> None:
    registry: Registry[str, int] = Registry("numbers", order=str)
    seen = [registry.rows]
    handle = registry.register("one", 1)
    seen.append(registry.rows)
    handle.close()
    seen.append(registry.rows)
    assert [dict(rows) for rows in seen] == [{}, {"one": 1}, {}]


def test_a_duplicate_names_both_places() -> None:
    registry: Registry[str, int] = Registry("numbers")
    # first registration
    registry.register("one", 1)
    with pytest.raises(AlreadyRegistered) as caught:
        registry.register("one", 1)
    line = sys._getframe().f_lineno - 1
    first = line_after("first registration")
    error = caught.value
    assert (error.registry, error.key) == ("numbers", "'one'")
    assert (error.first, error.again) == (first, f"{HERE}:{line}")
    assert str(error) == (
        f"numbers: 'one' is registered at {first}, and again at {HERE}:{line}; "
        "close the first registration, or choose another key"
    )
    assert registry.rows["one"] == 1


def test_a_duplicate_of_a_row_that_is_always_there_names_the_registry() -> None:
    line = sys._getframe().f_lineno + 1
    registry: Registry[str, int] = Registry("numbers", {"one": 1})
    with pytest.raises(AlreadyRegistered) as caught:
        registry.register("one", 2)
    assert caught.value.first == f"{HERE}:{line}" == registry.site("one")


def test_a_key_may_be_described() -> None:
    registry: Registry[int, str] = Registry("forms", describe=lambda _, name: name)
    registry.register(id(len), "len")
    with pytest.raises(AlreadyRegistered) as caught:
        registry.register(id(len), "len")
    assert caught.value.key == "len"


def test_several_rows_are_registered_together_or_not_at_all() -> None:
    registry: Registry[str, int] = Registry("numbers", {"two": 2}, order=str)
    with pytest.raises(AlreadyRegistered):
        registry.register_all({"one": 1, "two": 2, "three": 3})
    assert dict(registry.rows) == {"two": 2}
    with registry.register_all({"one": 1, "three": 3}):
        assert dict(registry.rows) == {"one": 1, "three": 3, "two": 2}
    assert dict(registry.rows) == {"two": 2}


def test_a_key_is_free_again_when_its_handle_is_closed() -> None:
    registry: Registry[str, int] = Registry("numbers", order=str)
    first = registry.register("one", 1)
    first.close()
    second = registry.register("one", 11)
    first.close()
    assert dict(registry.rows) == {"one": 11}
    second.close()
    assert dict(registry.rows) == {}


def test_a_shared_row_stays_until_all_of_its_handles_are_closed() -> None:
    for order in permutations(range(3)):
        registry: Registry[str, int] = Registry("numbers", order=str, shared=True)
        handles = [registry.register("one", 1) for _ in range(3)]
        with pytest.raises(AlreadyRegistered):
            registry.register("one", 2)
        seen = []
        for number in order:
            handles[number].close()
            handles[number].close()
            seen.append(dict(registry.rows))
        assert seen == [{"one": 1}, {"one": 1}, {}]


def test_rows_without_an_order_are_only_looked_up() -> None:
    registry: Registry[str, int] = Registry("numbers", {"one": 1})
    rows = registry.rows
    assert ("one" in rows, rows.get("two"), rows["one"], len(rows)) == (
        True,
        None,
        1,
        1,
    )
    readers: tuple[Callable[[], object], ...] = (
        lambda: [*rows],
        lambda: {**rows},
        lambda: dict(rows),
        lambda: sorted(rows),
        rows.keys,
        rows.values,
        rows.items,
    )
    for read in readers:
        with pytest.raises(AssertionError, match="no order: pass `order=`"):
            read()


def test_a_key_without_a_place_in_the_order_is_refused() -> None:
    registry = stages()
    with pytest.raises(ValueError, match=r"invalid key 'tuples': expected one of 'mod"):
        registry.register("tuples", 1)
    assert dict(registry.rows) == {}


def test_two_keys_with_one_place_in_the_order_are_refused() -> None:
    registry: Registry[str, int] = Registry("words", {"One": 1}, order=str.lower)
    with pytest.raises(ValueError, match=r"words: 'One' and 'one' have one place"):
        registry.register("one", 2)
    assert dict(registry.rows) == {"One": 1}


def test_every_order_of_registering_and_closing_leads_to_the_same_rows() -> None:
    """Every history of three rows: register all, close some, in all orders."""
    values = {"classes": 3, "exceptions": 2, "modules": 1}
    wanted = ["modules", "exceptions", "classes"]
    for order, closing in product(permutations(values), permutations(values)):
        registry = stages()
        handles: dict[str, RegistryHandle] = {}
        for count, key in enumerate(order, 1):
            handles[key] = registry.register(key, values[key])
            live = [each for each in wanted if each in order[:count]]
            assert [*registry.rows.items()] == [(each, values[each]) for each in live]
        for count, key in enumerate(closing, 1):
            handles[key].close()
            live = [each for each in wanted if each not in closing[:count]]
            assert [*registry.rows.items()] == [(each, values[each]) for each in live]


def test_every_interleaving_of_registering_and_closing_leads_to_the_same_rows() -> None:
    """Each state is reached in many ways: equal sets of rows are equal rows."""
    keys = ("classes", "exceptions", "modules")
    seen: dict[frozenset[str], set[tuple[str, ...]]] = {}

    def play(steps: tuple[str, ...]) -> None:
        registry, handles = stages(), dict[str, RegistryHandle]()
        for key in steps:
            if key in handles:
                handles.pop(key).close()
            else:
                handles[key] = registry.register(key, len(key))
        seen.setdefault(frozenset(handles), set()).add(tuple(registry.rows))

    for length in range(6):
        for steps in product(keys, repeat=length):
            play(steps)
    assert len(seen) == 8
    assert all(
        rows == {tuple(sorted(live, key=sequence("modules", "exceptions", "classes")))}
        for live, rows in seen.items()
    )


def test_threads_that_register_and_close_lose_no_row() -> None:
    registry: Registry[int, int] = Registry("numbers", order=int)

    def work(first: int) -> None:
        for key in range(first, first + 50):
            registry.register(key, key)
            registry.register(-key - 1, 0).close()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=work, args=(50 * number,)) for number in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(before)
    assert dict(registry.rows) == {key: key for key in range(400)}


def test_a_finalizer_may_close_a_row_while_another_is_registered() -> None:
    """The collector runs it in the thread that registers, in the middle of that."""
    registry: Registry[str, object] = Registry("objects", order=str)

    class Owner:
        def __init__(self) -> None:
            self.me = self
            self.handle = registry.register("lost", 0)

        def __del__(self) -> None:
            self.handle.close()

    class Collects(str):
        __slots__ = ()

        def __hash__(self) -> int:
            gc.collect()
            return str.__hash__(self)

    gc.disable()
    try:
        Owner()
        assert [*registry.rows] == ["lost"]
        registry.register(Collects("kept"), 1)
    finally:
        gc.enable()
    assert dict(registry.rows) == {"kept": 1}


@needs_fork
def test_a_forked_child_may_register_while_the_parent_holds_the_lock() -> None:
    registry: Registry[str, int] = Registry("numbers", order=str)
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with _LOCK:
            is_held.set()
            may_end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()

    def registers() -> bool:
        registry.register("one", 1)
        return dict(registry.rows) == {"one": 1}

    assert in_child(registers)
    may_end.set()
    thread.join()
    assert dict(registry.rows) == {}


FAILING_ONCE = """
install(registry, number)
if number == 1:
    raise KeyboardInterrupt
"""


def _install(registry: Registry[str, int], number: int) -> None:
    """Register for an importing module, as an `install` function of another one."""
    registry.register("row", number)


def test_a_module_whose_import_failed_registers_again() -> None:
    registry: Registry[str, int] = Registry("numbers", order=str)

    def load(number: int) -> None:
        module = ModuleType("interrupted")
        module.__dict__.update(registry=registry, number=number, install=_install)
        sys.modules["interrupted"] = module
        try:
            exec(FAILING_ONCE, module.__dict__)  # as an import does
        except BaseException:
            del sys.modules["interrupted"]
            raise

    with pytest.raises(KeyboardInterrupt):
        load(1)
    assert dict(registry.rows) == {"row": 1}
    try:
        load(2)
        assert dict(registry.rows) == {"row": 2}
        with pytest.raises(AlreadyRegistered):
            registry.register("row", 3)
    finally:
        sys.modules.pop("interrupted", None)


@pytest.mark.parametrize("order", [None, str])
def test_a_permanent_row_outlives_its_module(order: Any) -> None:
    """A loader of plug-ins may take a module whose rows are in use out of the table."""
    registry: Registry[str, int] = Registry("numbers", order=order, permanent=True)
    module = ModuleType("unloaded")
    module.__dict__.update(registry=registry)
    sys.modules["unloaded"] = module
    try:
        exec("HANDLE = registry.register('row', 1)", module.__dict__)  # as an import
    finally:
        del sys.modules["unloaded"]
    with pytest.raises(AlreadyRegistered):
        registry.register("row", 2)
    module.HANDLE.close()
    registry.register("row", 2)
    assert registry.rows["row"] == 2


@pytest.mark.parametrize("order", [None, str])
def test_a_permanent_row_is_replaced_by_its_own_module_only(
    order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own module has the same name and file; its lines may be others by now."""
    registry: Registry[str, int] = Registry("numbers", order=order, permanent=True)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setitem(globals(), "REGISTRY", registry)

    def load(folder: str, text: str) -> None:
        """Import a module from a folder; it is not in `sys.modules` before."""
        sys.modules.pop("of_a_user", None)
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "of_a_user.py").write_text(text)
        invalidate_caches()
        with monkeypatch.context() as patch:
            patch.syspath_prepend(tmp_path / folder)
            import_module("of_a_user")

    text = f"""\
import sys
registry = sys.modules[{__name__!r}].REGISTRY
HANDLE = registry.register("row", 1)
"""
    try:
        with pytest.raises(ZeroDivisionError):
            load("own", f"{text}1 / 0\n")
        assert registry.rows["row"] == 1
        with pytest.raises(AlreadyRegistered):
            load("another", text.replace("1)", "2)"))
        with pytest.raises(AlreadyRegistered):
            registry.register("row", 3)
        load("own", f"# mended\n{text.replace('1)', '4)')}")
        assert registry.rows["row"] == 4
        assert registry.site("row") == f"{tmp_path}/own/of_a_user.py:4"
        with pytest.raises(AlreadyRegistered):
            registry.register("row", 5)
        sys.modules["of_a_user"].HANDLE.close()
        assert keys_of(registry.rows) == set()
    finally:
        sys.modules.pop("of_a_user", None)


def test_rows_without_an_order_change_one_by_one() -> None:
    registry: Registry[int, int] = Registry("numbers", {0: 0})
    handles = [registry.register(number, -number) for number in range(1, 5)]
    handles[1].close()
    assert keys_of(registry.rows) == {0, 1, 3, 4}
    assert [registry.rows.get(number) for number in range(5)] == [0, -1, None, -3, -4]
