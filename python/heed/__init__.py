"""Exact scaled dot-product attention on CPUs.

    out = heed.attention(q, k, v, causal=True)

A row's bits depend on its own query, the keys and values it sees and the
parameters alone: not on threads, tiles, batch, other rows or, with fused
multiply-add, the SIMD target. heed.torch, heed.transformers and heed.onnx bring
it to what their names say; each needs what it is named after.
"""

from . import _core
from ._attention import attention
from ._command import info, tune
from ._paged import PagedCache
from ._plan import Plan

__version__ = _core.library.heed_version().decode()
__all__ = ["PagedCache", "Plan", "attention", "info", "tune"]
