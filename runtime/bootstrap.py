"""Everything that makes tensors whole: operators, their gradients, and the methods.

True only here: what happens to the default dispatcher when the first tensor is asked
for.  Importing this module registers namespace `core` with all its kernels, installs
what tensors can do, and sets the fallback at the Autograd keys: an operator without a
formula says so when it is run backwards, instead of passing for a constant.  Likewise
at ADInplaceOrView: what others' operators write to gets a new version; and at the keys
Python and PythonTLSSnapshot: classes of tensors and modes handle operators.

Rules: other dispatchers are left as they are; `runtime.operators.install` and
`runtime.autograd.install` do for them what they are asked to.
"""

from everyorder.runtime.autograd.inplace import install_version_fallback
from everyorder.runtime.autograd.install import install_fallbacks
from everyorder.runtime.dispatch.dispatcher import default_dispatcher, release
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.operators.bindings import functions, methods
from everyorder.runtime.tensors import Tensor, tensor
from everyorder.runtime.torch_dispatch import fallback, subclasses

__all__ = [
    "FALLBACKS",
    "Tensor",
    "functions",
    "methods",
    "subclasses",
    "tensor",
]

release(default_dispatcher(), "Autograd")
release(default_dispatcher(), "ADInplaceOrView")
# It lives as long as the default dispatcher does.
FALLBACKS = Library("_", "IMPL", origin="core autograd")
install_fallbacks(FALLBACKS)
install_version_fallback(FALLBACKS)
fallback.install_fallbacks(FALLBACKS)
