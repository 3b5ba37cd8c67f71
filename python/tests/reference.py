"""The formula in float64, written for reading: what heed is held to here."""

import numpy as np


def visible(len_q, len_k, offset=None, window=None, align=0):
    """bool [len_q, len_k]: key j is seen by query i."""
    i, j = np.arange(len_q)[:, None], np.arange(len_k)[None, :]
    seen = np.ones((len_q, len_k), bool)
    if offset is not None:
        seen &= j <= i + offset
    if window is not None:
        position = i + (align if offset is None else offset)
        left, right = window
        if left is not None and left >= 0:
            seen &= j >= position - left
        if right is not None and right >= 0:
            seen &= j <= position + right
    return seen


def attention(q, k, v, *, scale=None, seen=None, bias=None, softcap=0.0, sinks=None):
    """(out, lse, weights) in float64. q [B, Hq, Tq, D], k, v [B, Hkv, Tk, D];
    `seen` bool and `bias` broadcast to [B, Hq, Tq, Tk]; sinks [Hq]."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1] if k.shape[1] else 1
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    scores = scale * (q @ k.swapaxes(-1, -2))
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if bias is not None:
        scores = scores + np.asarray(bias, np.float64)
    if seen is not None:
        scores = np.where(seen, scores, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    logit = None
    if sinks is not None:
        logit = np.asarray(sinks, np.float64).reshape(1, -1, 1, 1)
        top = np.maximum(top, logit)
    top = np.where(np.isfinite(top), top, 0)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    if logit is not None:
        total = total + np.exp(logit - top)
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[..., 0]
    weights = weights / np.where(total == 0, 1, total)
    return weights @ v, lse, weights
