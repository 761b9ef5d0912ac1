"""Libraries: which kind may do what, and who owns a namespace."""

from dataclasses import replace

from everyorder.harness.scenario import (
    Scenario,
    call,
    define,
    fallback,
    impl,
    library,
    reserve,
    shared,
    together,
)
from tests.scenarios.kernels import (
    composed,
    no_cpu,
    on_cpu,
    on_cuda,
    typed_one,
    typed_two,
)

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
    # It claims nothing, so nothing shows.
    replace(library("text", "IMPL", "CPU"), constant=True),
    library("text", "DEF"),
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

# Steps that share one library: what one of them ends is its own, and nothing else.
one_library = Scenario(
    *shared(
        define("text::split(Tensor x) -> Tensor"),
        impl("text::split", on_cpu, "CPU", kind="FRAGMENT"),
        impl("text::split", composed, kind="FRAGMENT"),
    ),
    uses=[call("text::split", "cpu")],
)

# One library with a key of its own, for several operators: a refusal leaves the others.
one_library_with_a_key = Scenario(
    *shared(
        impl("text::split", on_cpu, library_key="CPU"),
        impl("text::join", typed_one, library_key="CPU"),
        impl("text::join", typed_two, library_key="CPU"),
        impl("text::join", on_cuda, "CUDA", library_key="CPU"),
    ),
    given=[define("text::split(Tensor x) -> Tensor")],
    probes=("cpu",),
)

# One library that registers the same twice: two registrations, of which one may go.
one_library_twice = Scenario(
    *shared(
        reserve("text::split"),
        reserve("text::split"),
        define("text::split(Tensor x) -> Tensor"),
        define("text::split(Tensor x) -> Tensor"),
    ),
    probes=("cpu",),
)

# Two libraries of one kind and namespace beside the shared one: each keeps its own.
shared_and_own = Scenario(
    *shared(
        define("text::split(Tensor x) -> Tensor"),
        impl("text::split", on_cpu, "CPU", kind="FRAGMENT"),
    ),
    define("text::join(Tensor x) -> Tensor"),
    impl("text::join", composed, kind="FRAGMENT"),
    probes=("cpu",),
)
