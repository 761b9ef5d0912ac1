"""Libraries: which kind may do what, and who owns a namespace."""

from harness.scenario import (
    Scenario,
    call,
    define,
    fallback,
    impl,
    library,
    together,
)
from tests.scenarios.kernels import composed, no_cpu, on_cpu, on_cuda

# One DEF library a namespace: the second is refused until the first is closed.
one_owner = Scenario(
    library("text", "DEF"),
    library("text", "DEF"),
    library("audio", "DEF"),
)

# DEF, FRAGMENT and IMPL libraries of one namespace work together.
three_kinds = Scenario(
    define("text::split(Tensor x) -> Tensor", kind="DEF"),
    define("text::join(Tensor x) -> Tensor"),
    impl("text::split", on_cpu, "CPU"),
    probes=("cpu",),
)

# A definition in a DEF library claims the namespace as well: two cannot.
owners_that_define = Scenario(
    define("text::split(Tensor x) -> Tensor", kind="DEF"),
    define("text::join(Tensor x) -> Tensor", kind="DEF"),
    impl("text::split", composed),
    probes=("cpu",),
)

# The key of a library goes to every kernel that names none.
key_of_the_library = Scenario(
    define("text::split(Tensor x) -> Tensor"),
    impl("text::split", on_cpu, library_key="CPU"),
    impl("text::split", on_cuda, "CUDA", library_key="CUDA"),
)

# A kernel for another key than the library's is refused.
key_against_the_library = Scenario(
    define("text::split(Tensor x) -> Tensor"),
    impl("text::split", on_cuda, "CUDA", library_key="CPU"),
    impl("text::split", on_cpu, "CPU"),
)

# An IMPL library defines nothing.
impl_does_not_define = Scenario(
    define("text::split(Tensor x) -> Tensor", kind="IMPL"),
    define("text::split(Tensor x) -> Tensor"),
    impl("text::split", on_cpu, "CPU"),
)

# A definition in a FRAGMENT library may come with kernels in the same library.
fragment_implements = Scenario(
    define("text::split(Tensor x) -> Tensor"),
    impl("text::split", on_cpu, "CPU", kind="FRAGMENT"),
    impl("text::split", composed, kind="FRAGMENT"),
)

# Libraries that cannot be: the wildcard, a reserved name, a key where none belongs.
impossible_libraries = Scenario(
    library("_", "FRAGMENT"),
    library("prim", "DEF"),
    library("text", "DEF", "CPU"),
    library("text", "IMPL", "CPU"),
)

# An extension that is loaded and unloaded as one, beside another one.
extensions = Scenario(
    together(
        library("text", "DEF"),
        define("text::split(Tensor x) -> Tensor"),
        impl("text::split", on_cpu, "CPU"),
    ),
    together(
        impl("text::split", on_cuda, "CUDA"),
        fallback(no_cpu, "CPU"),
    ),
    uses=[call("text::split", "cpu"), call("text::split", "cuda")],
)

# Two extensions that cannot both be loaded: the second leaves nothing, not even the
# part of it that would have fitted.
extensions_in_conflict = Scenario(
    together(
        define("text::join(Tensor x) -> Tensor"),
        library("text", "DEF"),
    ),
    together(
        define("text::split(Tensor x) -> Tensor"),
        library("text", "DEF"),
    ),
    impl("text::split", on_cpu, "CPU"),
    probes=("cpu",),
)
