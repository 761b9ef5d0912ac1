"""Names of torch that the runtime does not have, and what to use instead.

`docs/outside.md` is the same list with examples; a test compares both.

Rule: a name is listed only if programs ask for it and there is a replacement to name.
"""

# Name in `runtime` -> why it is absent, and what to use.
OUTSIDE = {
    "ao": "tensors are not quantized; use float16, bfloat16 or `autocast`",
    "compile": "use `jit.script` or `jit.trace`, which compile a function",
    "distributed": "there are no collectives for tensors; use `rpc` for remote calls",
    "export": "use `jit.trace` and `jit.save`, which store a program",
    "func": "use `autograd.grad`, with `create_graph=True` for further gradients",
    "fx": "use `jit.script(function).graph`, which can be read and printed",
    "hub": "models are not downloaded; use `Module.load_state_dict`",
    "multiprocessing": "use `rpc`, or `numpy()` arrays in shared memory",
    "onnx": "use `jit.save`, which stores a program as text",
    "optim": "use `no_grad()` and in-place operators on the parameters",
    "quantization": "tensors are not quantized; use float16, bfloat16 or `autocast`",
    "sparse": "tensors are dense; use indices and values with `index_put_`, `scatter`",
    "sparse_coo_tensor": "tensors are dense; use `zeros(...)` and `index_put_`",
    "sparse_csr_tensor": "tensors are dense; use `zeros(...)` and `index_put_`",
    "vmap": "tensors are not batched; use a leading dimension, or `stack` of results",
}
