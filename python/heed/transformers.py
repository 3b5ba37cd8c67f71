"""``attn_implementation="heed"`` for Hugging Face Transformers.

    import heed.transformers
    heed.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="heed")

Grouped heads, soft cap, sliding window and sinks are the model's; a mask is only made
where positions do not say it (padding, packing, a static cache). The maps of
``output_attentions=True`` are the weights that were used. What needs a gradient,
dropout, another device or float64 is computed with PyTorch's operators, and counted
in heed.torch.counts().
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from transformers import AttentionInterface, AttentionMaskInterface
from transformers import masking_utils as _masking

try:  # where models say what they collect: some do not pass output_attentions on
    from transformers.utils.output_capturing import _active_collector as _collector
except ImportError:
    _collector = None

from . import _array, _attention
from . import torch as _torch

__all__ = ["NAME", "attention_forward", "attention_mask", "register"]

NAME = "heed"


def register(name: str = NAME) -> None:
    """Makes ``attn_implementation=name`` known to Transformers."""
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, attention_mask)


def _window_alone(mask_function):
    """True if `mask_function` is Transformers' sliding window and causal line."""
    try:
        functions = mask_function.__closure__[0].cell_contents
        overlay, causal = functions
        made_by = overlay.__qualname__.split(".")[0], mask_function.__qualname__.split(".")[0]
    except (AttributeError, IndexError, TypeError, ValueError):
        return False
    return causal is _masking.causal_mask_function and made_by == (
        "sliding_window_overlay",
        "and_masks",
    )


def _nothing_padded(attention_mask, kv_length, kv_offset):
    if attention_mask is None:
        return True
    if attention_mask.shape[-1] < kv_offset + kv_length:
        return False
    return bool(attention_mask[:, kv_offset : kv_offset + kv_length].all())


def attention_mask(*args, **kwargs):
    """The mask of Transformers' sdpa_mask, or None where attention_forward knows it:
    causal, perhaps in a window, the last query at the last key, nothing padded."""
    function = kwargs.get("mask_function", _masking.causal_mask_function)
    if (
        not args
        and kwargs.get("allow_is_causal_skip", False)
        and "q_length" in kwargs
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
    ):
        q_length, kv_length = kwargs["q_length"], kwargs["kv_length"]
        q_offset, kv_offset = kwargs.get("q_offset", 0), kwargs.get("kv_offset", 0)
        causal = function is _masking.causal_mask_function and kwargs.get("local_size") is None
        if (
            (causal or _window_alone(function))
            and q_offset + q_length == kv_offset + kv_length
            and _nothing_padded(kwargs.get("attention_mask"), kv_length, kv_offset)
        ):
            return None
    return _masking.sdpa_mask(*args, **kwargs)


def _compute(query, key, value, mask, causal, scale, window, softcap, sinks, want_weights):
    """(out [batch, tokens, heads, dim], weights or None)."""
    batch, heads, tokens, _ = query.shape
    out = query.new_empty(batch, tokens, heads, value.shape[-1])
    view, dense = _array.torch_view, _torch.dense_last
    views = view(dense(query)), view(dense(key)), view(dense(value))
    line = "bottom_right" if causal else None
    window = None if window is None else (window - 1, 0 if causal else window - 1)
    extra = None
    if sinks is not None or (window is not None and not causal):
        align = "bottom_right" if window is not None and not causal else None
        extra = _attention.Extra(views, line, align, sinks=sinks)
    prepared, call = _attention.run(
        views,
        view(out.transpose(1, 2)),
        None,
        None if mask is None else _torch.mask_view(mask, key.shape[-2]),
        extra,
        line,
        scale,
        window,
        softcap,
        threads=torch.get_num_threads(),
    )
    weights = None
    if want_weights:
        weights = _attention.weights(prepared, call, query).to(query.dtype)
    prepared.give(call)
    return out, weights


_OP = "heed::attention"
torch.library.define(
    _OP,
    "(Tensor query, Tensor key, Tensor value, Tensor? mask, bool causal, float? scale, "
    "int? window, float? softcap, Tensor? sinks) -> Tensor",
)
torch.library.impl(_OP, "CPU", lambda *args: _compute(*args, False)[0])


@torch.library.register_fake(_OP)
def _fake(query, key, value, mask, causal, scale, window, softcap, sinks):
    batch, heads, tokens, _ = query.shape
    return query.new_empty(batch, tokens, heads, value.shape[-1])


def _with_pytorch(
    query, key, value, mask, causal, scale, window, softcap, sinks, dropout, training
):
    """The same by PyTorch's operators."""
    groups = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(2, 3) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is not None and mask.dtype != torch.bool:
        scores, mask = scores + mask, None
    if causal or window is not None:
        tokens, keys = scores.shape[-2:]
        i = torch.arange(tokens, device=query.device)[:, None] + keys - tokens
        j = torch.arange(keys, device=query.device)[None, :]
        seen = j <= i if causal else torch.ones_like(j <= i)
        if window is not None:
            seen = seen & (j > i - window) & (j < i + window)
        mask = seen if mask is None else mask & seen
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    if sinks is not None:
        logits = sinks.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, logits], dim=-1)
    weights = F.softmax(scores, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    weights = weights[..., : key.shape[-2]].to(query.dtype)
    weights = F.dropout(weights, dropout, training)
    return (weights @ value).transpose(1, 2).contiguous(), weights


def _wants_weights(module, kwargs):
    if kwargs.get("output_attentions"):
        return True
    collected = None if _collector is None else _collector.get()
    if collected is not None:
        return any(what.endswith("attentions") for what in collected)
    return bool(getattr(getattr(module, "config", None), "output_attentions", False))


def _refusal(query, key, value, mask, dropout, sinks):
    tensors = [x for x in (query, key, value, mask, sinks) if x is not None]
    if any(x.device.type != "cpu" for x in tensors):
        return "device or layout"
    dtype = query.dtype
    if dtype not in _torch.DTYPES or key.dtype != dtype or value.dtype != dtype:
        return "dtype"
    if mask is not None and mask.dtype not in (torch.bool, torch.float32, dtype):
        return "mask dtype"
    if dropout:
        return "dropout"
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return "autograd"
    if torch.jit.is_tracing():
        return "tracing"
    return None


def attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **kwargs,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What Transformers calls for a layer.

    Args:
      query: ``(batch, heads, tokens, dim)``; key, value: ``(batch, kv heads, keys,
        dim)``.
      attention_mask: broadcasts to ``(batch, heads, tokens, keys)``, bool or added;
        None where positions say it.
      s_aux: the sinks, ``(heads,)``.

    Returns:
      ``(batch, tokens, heads, dim)``, and the weights if ``output_attentions``.
    """
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = bool(causal) and attention_mask is None
    # A mask has the window in it already.
    window = sliding_window if attention_mask is None and causal else None
    softcap = softcap or None
    want_weights = _wants_weights(module, kwargs)
    arguments = query, key, value, attention_mask, causal, scaling, window, softcap, s_aux
    compiling = torch.compiler.is_compiling()
    why = _refusal(query, key, value, attention_mask, dropout, s_aux)
    if why is not None or (compiling and want_weights):
        if not compiling:
            _torch.count(why)
        return _with_pytorch(*arguments, dropout, module.training)
    if compiling:
        return torch.ops.heed.attention(*arguments), None
    if s_aux is not None:
        s_aux = np.asarray(s_aux.detach().float())
    out, weights = _compute(*arguments[:8], s_aux, want_weights)
    _torch.count("heed")
    return out, weights
