"""The bootstrap of tensors: operators, their gradients, and the methods.

Importing this module registers namespace `core` with all its kernels in the default
dispatcher, and installs the methods of tensors.  It sets the fallback at the Autograd
keys: an operator without a formula raises when it is run backwards, instead of passing
for a constant.  The fallback at ADInplaceOrView increments the version of tensors that
foreign operators write to; those at Python and PythonTLSSnapshot let classes of tensors
and modes handle operators.

Rules: other dispatchers stay unchanged; `runtime.operators.install` and
`runtime.autograd.install` install the operators and fallbacks in them on request.
"""

from everyorder.runtime.autograd.inplace import install_version_fallback
from everyorder.runtime.autograd.install import install_fallbacks
from everyorder.runtime.dispatch.dispatcher import default_dispatcher, release
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.operators.bindings import functions, methods, typed
from everyorder.runtime.tensors import Tensor, tensor
from everyorder.runtime.torch_dispatch import fallback, subclasses

__all__ = [
    "DECOMPOSED",
    "FALLBACKS",
    "Tensor",
    "functions",
    "methods",
    "subclasses",
    "tensor",
    "typed",
]

release(default_dispatcher(), "Autograd")
release(default_dispatcher(), "ADInplaceOrView")
# Registered as long as the default dispatcher exists.
FALLBACKS = Library("_", "IMPL", origin="core autograd")
install_fallbacks(FALLBACKS)
install_version_fallback(FALLBACKS)
fallback.install_fallbacks(FALLBACKS)
DECOMPOSED = Library("core", "IMPL", "Python", origin="core operators")
fallback.install_decompositions(DECOMPOSED)
