"""DLPack under torch's path: tensors as capsules, and the other way round."""

from enum import IntEnum
from typing import Any

from everyorder.runtime.tensors import Tensor, from_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


# The devices of DLPack, by the numbers of its header `dlpack.h`.
DLDeviceType = IntEnum(
    "DLDeviceType",
    {
        "kDLCPU": 1,
        "kDLCUDA": 2,
        "kDLCUDAHost": 3,
        "kDLOpenCL": 4,
        "kDLVulkan": 7,
        "kDLMetal": 8,
        "kDLVPI": 9,
        "kDLROCM": 10,
        "kDLROCMHost": 11,
        "kDLExtDev": 12,
        "kDLCUDAManaged": 13,
        "kDLOneAPI": 14,
        "kDLWebGPU": 15,
        "kDLHexagon": 16,
        "kDLMAIA": 17,
    },
)


def to_dlpack(tensor: Tensor) -> Any:
    """Return a capsule on the memory of a tensor, which one consumer may use.

    Raises:
        NotShareable: the tensor cannot be exported, or requires grad.
        SubclassError: its class has a handler.
    """
    return tensor.__dlpack__()
