"""Scripts: the names of `torch.jit`, as programs for torch have them."""
