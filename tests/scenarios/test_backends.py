"""Backends: which kernel a call reaches for tensors of each, and of several at once."""

from everyorder.harness.scenario import Scenario, call, define, impl
from tests.scenarios.kernels import (
    broken,
    chosen,
    composed,
    in_half,
    in_python,
    keyed,
    nothing_useful,
    on_cpu,
    on_cuda,
    on_fpga,
    on_meta,
    on_mkldnn,
    on_private,
    on_quantized,
    on_sparse,
    on_xla,
    traced,
)

_clip = define("audio::clip(Tensor x) -> Tensor")

# Each backend its own kernel; the third one is told what there is.
cpu_and_cuda = Scenario(
    _clip,
    impl("audio::clip", on_cpu, "CPU"),
    impl("audio::clip", on_cuda, "CUDA"),
    uses=[call("audio::clip", "cpu"), call("audio::clip", "meta")],
)

# Tensors of two backends in one call: the backend of higher priority is asked.
mixed_backends = Scenario(
    _clip,
    impl("audio::clip", on_cpu, "CPU"),
    impl("audio::clip", on_private, "PrivateUse1"),
    probes=("cpu", "CPU+PrivateUse1", "CPU+Meta"),
)

# Meta tensors have shapes only, and a kernel of their own.
meta_kernel = Scenario(
    _clip,
    impl("audio::clip", on_cpu, "CPU"),
    impl("audio::clip", on_meta, "Meta"),
    impl("audio::clip", composed),
)

# Sparse, quantized and mkldnn tensors are backends of their own, all on CPU.
kinds_of_cpu_tensors = Scenario(
    impl("audio::clip", on_cpu, "CPU"),
    impl("audio::clip", on_sparse, "SparseCPU"),
    impl("audio::clip", on_quantized, "QuantizedCPU"),
    impl("audio::clip", on_mkldnn, "MkldnnCPU"),
    given=[_clip],
    probes=("cpu", "sparse", "mkldnn", "QuantizedCPU"),
)

# An operator without a kernel for quantized tensors says so, also beside a CPU kernel.
quantized_is_missing = Scenario(
    _clip,
    impl("audio::clip", on_cpu, "CPU"),
    uses=[call("audio::clip", "QuantizedCPU")],
)

# BackendSelect stands before all backends and falls through unless it has a kernel.
backend_select = Scenario(
    _clip,
    impl("audio::clip", chosen, "BackendSelect"),
    impl("audio::clip", on_cpu, "CPU"),
)

# Autocast keys are on every tensor and excluded at rest: the kernel is not reached.
autocast_sleeps = Scenario(
    _clip,
    impl("audio::clip", in_half, "AutocastCPU"),
    impl("audio::clip", on_cpu, "CPU"),
    uses=[call("audio::clip", "cpu")],
)

# Python comes before the backends and after autograd.
python_key = Scenario(
    _clip,
    impl("audio::clip", in_python, "Python"),
    impl("audio::clip", on_cpu, "CPU"),
    probes=("cpu", "CPU+Python", "CPU+Python+AutogradCPU"),
)

# A tracer sees the call first.
tracer = Scenario(
    _clip,
    impl("audio::clip", traced, "Tracer"),
    impl("audio::clip", on_cpu, "CPU"),
    probes=("cpu", "CPU+Tracer"),
)

# A kernel that wants the keyset gets the one of the call, whoever else is there.
with_keyset = Scenario(
    _clip,
    impl("audio::clip", keyed, "CPU", with_keyset=True),
    impl("audio::clip", on_cuda, "CUDA"),
    uses=[call("audio::clip", "cpu")],
)

# A kernel that raises, and one that returns nonsense: both leave nothing behind.
bad_kernels = Scenario(
    _clip,
    impl("audio::clip", broken, "CPU"),
    impl("audio::clip", nothing_useful, "CUDA"),
    uses=[call("audio::clip", "cpu"), call("audio::clip", "cuda")],
)

# Kernels at keys that have no tensors in the calls: nothing else notices them.
bystanders = Scenario(
    _clip,
    impl("audio::clip", on_xla, "XLA"),
    impl("audio::clip", on_fpga, "FPGA"),
    uses=[call("audio::clip", "cpu")],
)
