"""torch.nn.functional.scaled_dot_product_attention by heed, on the CPU.

    import heed.torch
    out = heed.torch.scaled_dot_product_attention(q, k, v, is_causal=True)

    with heed.torch.enable() as counts:     # or for good: heed.torch.enable()
        model(x)                            # every F.sdpa call goes to heed
    print(counts)                           # and those that PyTorch did, and why

Signature, defaults, mask rules and errors are PyTorch's. What heed does not do goes
back to PyTorch: dropout, autograd, other devices and types, and what is an error
there. Threads are torch.get_num_threads(). Compiled code calls the operator
``torch.ops.heed.scaled_dot_product_attention``.
"""

from __future__ import annotations

import math
import threading
from collections import Counter

import torch
import torch.nn.functional as F

from . import _array, _attention, _core

__all__ = ["counts", "disable", "enable", "reset_counts", "scaled_dot_product_attention"]

_pytorch = F.scaled_dot_product_attention
DTYPES = {torch.float32, torch.float16, torch.bfloat16}
_PLAIN = {torch.Tensor, torch.nn.Parameter}

_counts: Counter = Counter()
_lock = threading.Lock()


def count(what):
    """Adds one to counts()[what]."""
    with _lock:
        _counts[what] += 1


def counts() -> dict[str, int]:
    """Calls since reset_counts(): ``"heed"`` how many heed did, every other key why
    PyTorch did so many. Compiled code is not counted."""
    with _lock:
        return dict(_counts)


def reset_counts() -> None:
    """Forgets what counts() counts."""
    with _lock:
        _counts.clear()


def _refusal(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """Why PyTorch has to do this call, or None."""
    tensors = (query, key, value) if attn_mask is None else (query, key, value, attn_mask)
    for tensor in tensors:
        if type(tensor) not in _PLAIN:
            return "tensor subclass"
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
            return "device or layout"
    dtype = query.dtype
    if dtype not in DTYPES or key.dtype != dtype or value.dtype != dtype:
        return "dtype"
    if dropout_p != 0.0:
        return "dropout"
    if torch.is_grad_enabled() and any([tensor.requires_grad for tensor in tensors]):
        return "autograd"
    if scale is not None and not math.isfinite(scale):
        return "scale"
    if attn_mask is not None:
        if is_causal:
            return "mask with is_causal"
        if attn_mask.dtype not in (torch.bool, torch.float32, dtype):
            return "mask dtype"
    return _shape_refusal(query, key, value, attn_mask, enable_gqa)


def _shape_refusal(query, key, value, attn_mask, enable_gqa):
    rank = query.dim()
    if rank < 2 or key.dim() != rank or value.dim() != rank:
        return "rank"
    q, k, v = query.shape, key.shape, value.shape
    if q[-1] != k[-1] or k[-2] != v[-2] or k[:-2] != v[:-2]:
        return "shapes"
    if q[-1] == 0:
        return "heads of no width"  # heed weighs all keys alike; PyTorch says NaN
    if q[:-2] != k[:-2]:
        if not enable_gqa or rank != 4 or q[0] != k[0]:
            return "shapes"
        if k[1] == 0 or q[1] % k[1] != 0:
            return "shapes"
    if attn_mask is not None:
        mask = attn_mask.shape
        if len(mask) > min(rank, 4) or (rank > 4 and len(mask) > 3):
            return "mask rank"
        want = (*q[:-1], k[-2])
        for have, size in zip(reversed(mask), reversed(want)):
            if have != size and have != 1:
                return "mask shape"
    return None


def _new_out(query, value):
    """The result, uninitialised. Tokens before heads in memory, as PyTorch's own
    CPU kernel has it: most models join the heads next, which then copies nothing."""
    shape = (*query.shape[:-1], value.shape[-1])
    if len(shape) != 4:
        return query.new_empty(shape)
    _, heads, tokens, width = shape
    strides = (tokens * heads * width, width, heads * width, 1)
    return query.new_empty_strided(shape, strides)


def dense_last(tensor):
    """`tensor`, copied if its last axis is not dense."""
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] < 2 else tensor.contiguous()


def mask_view(attn_mask, keys):
    """The view of a mask, copied only if its last axis is not the keys', dense."""
    if attn_mask.dim() == 0 or (attn_mask.shape[-1] == 1 and keys != 1):
        shape = attn_mask.shape[:-1] if attn_mask.dim() else ()
        attn_mask = attn_mask.expand(*shape, keys).contiguous()
    return _array.torch_view(dense_last(attn_mask))


def _compute(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    """The operator on the CPU; everything has been checked."""
    query, key, value = (x.resolve_neg() for x in (query, key, value))
    out = _new_out(query, value)
    flat_out = out
    if query.dim() > 4:
        query, key, value = (x.flatten(0, -4) for x in (query, key, value))
        flat_out = out.flatten(0, -4)
    view = _array.torch_view
    views = view(dense_last(query)), view(dense_last(key)), view(dense_last(value))
    prepared, call = _attention.run(
        views,
        view(flat_out),
        None,
        None if attn_mask is None else mask_view(attn_mask, key.shape[-2]),
        None,
        "top_left" if is_causal else None,
        scale,
        threads=torch.get_num_threads(),
    )
    prepared.give(call)
    # What was read where it lay may be read so the next time.
    if query.dim() == 4 and attn_mask is None and all(
        x is view[4] for x, view in zip((query, key, value), views)
    ):
        return out, (prepared, out.shape, out.stride())
    return out, None


_OP = "heed::scaled_dot_product_attention"
torch.library.define(
    _OP,
    "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, bool is_causal=False, "
    "float? scale=None, bool enable_gqa=False) -> Tensor",
)
torch.library.impl(_OP, "CPU", lambda *args, **named: _compute(*args, **named)[0])


@torch.library.register_fake(_OP)
def _fake(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    return _new_out(query, value)


def _no_backward(ctx, grad):
    raise RuntimeError(
        "heed: no backward pass; call heed.torch.scaled_dot_product_attention, which hands "
        "what needs one to PyTorch"
    )


torch.library.register_autograd(_OP, _no_backward)
_operator = torch.ops.heed.scaled_dot_product_attention


def _cast(tensors):
    """Tensors as autocast would hand them to PyTorch's function."""
    dtype = torch.get_autocast_dtype("cpu")
    return [
        x.to(dtype) if x is not None and x.dtype in DTYPES and x.dtype != dtype else x
        for x in tensors
    ]


# What a call has to look like, tensors and state, to
# (plan and layout, shape and strides of the result).
_known = _core.Cache(256)


def _unusual():
    """Why a call now would not just compute, or None: ``"operator"`` if something
    wants to see operators, else why PyTorch has to do it."""
    if torch._C._get_tracing_state() is not None:
        return "tracing"
    # vmap, grad and the like, whose tensors have no memory.
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "function transform"
    if torch._C._len_torch_dispatch_stack() > 0:
        return "operator"
    return None


def _known_call(query, key, value, is_causal, scale, enable_gqa):
    """(key of _known, the result if the call is known): the short way."""
    signature = (
        query.shape, query.stride(), query.dtype, key.shape, key.stride(), key.dtype,
        value.shape, value.stride(), value.dtype, is_causal, scale, enable_gqa,
        torch.get_num_threads(),
    )  # fmt: skip
    known = _known.get(signature)
    if (
        known is None
        or not (query.is_cpu and key.is_cpu and value.is_cpu)
        or query.is_neg()
        or key.is_neg()
        or value.is_neg()
    ):
        return signature, None
    if torch.is_grad_enabled() and (
        query.requires_grad or key.requires_grad or value.requires_grad
    ):
        return signature, None
    prepared, shape, strides = known
    out = query.new_empty_strided(shape, strides)
    call = prepared.take()
    call.q_data = query.data_ptr()
    call.k_data = key.data_ptr()
    call.v_data = value.data_ptr()
    call.out_data = out.data_ptr()
    call.mask_data = call.lse_data = None
    prepared.run(call)
    prepared.give(call)
    return signature, out


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """torch.nn.functional.scaled_dot_product_attention, by heed where it can.

    Args:
      query: ``(batch, ..., heads, L, E)``.
      key: ``(batch, ..., heads, S, E)``.
      value: ``(batch, ..., heads, S, Ev)``.
      attn_mask: broadcasts to ``(..., L, S)``; bool, True = takes part; or float32
        or query's type, added. Not with `is_causal`.
      dropout_p: other than 0 PyTorch computes.
      is_causal: key j <= query i, aligned top left.
      scale: None = ``1 / sqrt(E)``.
      enable_gqa: key and value may have fewer heads, which divide query's.

    Returns:
      ``(batch, ..., heads, L, Ev)`` of query's type.

    Raises:
      What PyTorch raises.
    """
    arguments = query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
    if torch.compiler.is_compiling():
        if _refusal(*arguments) is not None:
            return _pytorch(*arguments[:6], scale=scale, enable_gqa=enable_gqa)
        if torch.is_autocast_enabled("cpu"):
            query, key, value, attn_mask = _cast((query, key, value, attn_mask))
        return _operator(query, key, value, attn_mask, is_causal, scale, enable_gqa)

    unusual = _unusual()
    if unusual is not None and unusual != "operator":
        return _hand_back(unusual, *arguments)
    signature = None
    if (
        unusual is None
        and attn_mask is None
        and dropout_p == 0.0
        and type(query) in _PLAIN
        and type(key) in _PLAIN
        and type(value) in _PLAIN
        and not torch._C._is_any_autocast_enabled()
    ):
        try:
            signature, out = _known_call(query, key, value, is_causal, scale, enable_gqa)
        except (RuntimeError, TypeError):
            out = None  # a sparse or nested tensor has no strides or no memory
        if out is not None:
            count("heed")
            return out
    refusal = _refusal(*arguments)
    if refusal is not None:
        return _hand_back(refusal, *arguments)
    if torch.is_autocast_enabled("cpu"):
        query, key, value, attn_mask = _cast((query, key, value, attn_mask))
    if unusual is not None:
        return _operator(query, key, value, attn_mask, is_causal, scale, enable_gqa)
    out, known = _compute(query, key, value, attn_mask, is_causal, scale, enable_gqa)
    if signature is not None and known is not None:
        _known.put(signature, known)
    count("heed")
    return out


def _hand_back(why, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    count(why)
    return _pytorch(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


class _Enabled:
    """What enable() returns: undoes it at the end of a `with`."""

    def __init__(self):
        self._before = F.scaled_dot_product_attention
        F.scaled_dot_product_attention = scaled_dot_product_attention

    def __enter__(self):
        reset_counts()
        return _counts

    def __exit__(self, *error):
        F.scaled_dot_product_attention = self._before


def enable() -> _Enabled:
    """Sends calls of ``torch.nn.functional.scaled_dot_product_attention`` to heed,
    until disable(), or the end of ``with heed.torch.enable() as counts:``, where
    `counts` starts from nothing. Code that took the function out of its module
    before, by ``from ... import``, keeps PyTorch's."""
    return _Enabled()


def disable() -> None:
    """Gives F.scaled_dot_product_attention back to PyTorch."""
    F.scaled_dot_product_attention = _pytorch
