"""Libraries come and go; what they registered goes with them."""

import gc

import torch

answers = {}


def use(name, *args):
    try:
        return getattr(torch.ops.snippet_h, name)(*args).tolist()
    except (AttributeError, NotImplementedError, RuntimeError) as error:
        return isinstance(error, AttributeError)


x = torch.ones(2)
base = torch.library.Library("snippet_h", "DEF")
base.define("f(Tensor x) -> Tensor")
base.define("g(Tensor x) -> Tensor")
base.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
answers["base"] = use("f", x)

with torch.library._scoped_library("snippet_h", "IMPL") as extra:
    extra.impl("f", lambda x: x * 100, "CPU")
    answers["inside"] = use("f", x)
answers["outside"] = use("f", x)

first = torch.library.Library("snippet_h", "IMPL")
first.impl("g", lambda x: x + 2, "CPU")
second = torch.library.Library("snippet_h", "IMPL")
second.impl("g", lambda x: x + 3, "CPU", allow_override=True)
answers["the newest"] = use("g", x)
second._destroy()
answers["uncovered"] = use("g", x)
first._destroy()
answers["nothing left"] = use("g", x)

fragment = torch.library.Library("snippet_h", "FRAGMENT")
fragment.define("h(Tensor x) -> Tensor")
fragment.impl("h", lambda x: x - 1, "CPU")
answers["fragment"] = use("h", x)
fragment._destroy()
answers["fragment gone"] = use("h", x)
answers["again"] = []
for number in range(3):
    again = torch.library.Library("snippet_h", "FRAGMENT")
    again.define("h(Tensor x) -> Tensor")
    again.impl("h", lambda x, number=number: x * number, "CPU")
    answers["again"].append(use("h", x))
    again._destroy()
del first, second, fragment, again
gc.collect()
answers["at the end"] = use("f", x)
base._destroy()
answers["all gone"] = use("f", x)
