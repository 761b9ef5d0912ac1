"""Installing the operators on a dispatcher."""

import pytest

from runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from runtime.errors.registration import Conflict
from runtime.operators import install
from runtime.operators.call import NAMESPACE
from runtime.operators.install import ORIGIN, declared
from tests.coded import code
from tests.operators.made import shown, tensor


def test_installing_on_another_dispatcher() -> None:
    dispatcher = Dispatcher()
    libraries = install(dispatcher)
    assert [library.kind for library in libraries].count("DEF") == 1
    keys = [library.key for library in libraries if library.kind == "IMPL"]
    assert len(keys) == len(set(keys))
    assert {"CPU", "CUDA", "Meta"} <= {key.name for key in keys if key}
    names = sorted(each.schema.partition("(")[0] for each in declared())
    assert sorted(map(str, dispatcher.op_names())) == [
        f"{NAMESPACE}::{name}" for name in names
    ]
    add = dispatcher.find_op("core::add")
    assert add is not None
    assert shown(add(tensor([1.0]), 2)) == ("float32", [3.0])
    state = dispatcher.dump_state("core::add")
    assert ORIGIN in state
    assert "add_cpu" in state
    with pytest.raises(Conflict, check=code("NamespaceTaken")):
        install(dispatcher)
    for library in reversed(libraries):
        library.close()
    assert not list(dispatcher.op_names())


def test_the_default_dispatcher_is_installed_on_once() -> None:
    assert install() is install(default_dispatcher())
