"""Layouts, operands and passes that the CPU and CUDA kernels share."""
