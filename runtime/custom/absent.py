"""Absent names: what users of torch.library look for and is not here, with the reason.

True only here: names that nothing stands for.  Whoever asks for one is told why, and
what there is instead, by the `AttributeError` that any other name gives, too.
"""

# Name -> why it is not there, and what is.
ABSENT = {
    "impl_abstract": "it is called register_fake",
    "register_effect": "operators run in the order of their calls, and none is left "
    "out",
    "register_vmap": "nothing in this runtime makes batched tensors; a kernel of one's "
    "own for them is Library.impl(op, kernel, 'FuncTorchBatched')",
    "triton_op": "there is no Triton; @register_kernel('cuda') takes any function",
    "wrap_triton": "there is no Triton; @register_kernel('cuda') takes any function",
}


def missing(owner: str, name: str, of: object = None) -> AttributeError:
    """The error that `owner`, a module or an object in words, has no such name."""
    reason = ABSENT.get(name)
    text = f"{owner} has no attribute {name!r}"
    return AttributeError(f"{text}: {reason}" if reason else text, name=name, obj=of)
