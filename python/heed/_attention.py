"""heed.attention."""

from __future__ import annotations

import numbers

import numpy as np

from . import _abi, _array, _core, _layout

_view = _array.view
_prepared = _core.Cache(256)


def attention(
    q,
    k,
    v,
    *,
    scale: float | None = None,
    causal: bool | str | int | np.ndarray | None = None,
    attn_mask=None,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi_slopes=None,
    sinks=None,
    align: str | int | np.ndarray | None = None,
    mask_block: tuple[int, int] = (1, 1),
    seqused_k=None,
    cu_seqlens_q=None,
    cu_seqlens_k=None,
    block_table=None,
    enable_gqa: bool = True,
    threads: int = 0,
    return_lse: bool = False,
    return_weights: bool = False,
    out=None,
):
    """Exact attention, ``softmax(softcap(scale * q k^T) + alibi + mask) v``.

    Arrays are NumPy's, or have ``__dlpack__`` or ``__array_interface__``; float32,
    float16 or bfloat16 (ml_dtypes' or torch's, or the bits as uint16), all of one
    type; read where they lie, whatever their strides, but that the last axis is
    contiguous. Arithmetic is float32. Other Python threads run meanwhile.

    Args:
      q: ``(batch, heads_q, len_q, dim)``; the first two axes are optional.
      k: ``(batch, heads_kv, len_k, dim)``. Query head h reads kv head
        ``h // (heads_q // heads_kv)``.
      v: ``(batch, heads_kv, len_k, dim_v)``.
      scale: of the scores; None is ``1 / sqrt(dim)``.
      causal: which keys j query i sees: ``"top_left"`` j <= i (PyTorch's
        is_causal), ``"bottom_right"`` j <= i + len_k - len_q (a KV cache), an int
        or ``(batch,)`` ints: j <= i + that; ``True`` only where len_q == len_k;
        ``None`` or ``False``: all.
      attn_mask: broadcasts to ``(batch, heads_q, len_q, len_k)``. bool or uint8:
        0 hides; float32 or q's type: added to the scaled score, -inf hides.
      window: ``(left, right)``: query i at position p = i + offset sees keys
        p - left to p + right, None = no limit. The offset is `causal`'s, else
        `align`'s.
      softcap: c > 0 makes scores ``c * tanh(score / c)``, before the next two.
      alibi_slopes: ``(heads_q,)``: slope * (j - p) is added.
      sinks: ``(heads_q,)``: logits that join the denominator.
      align: p's offset for a window or ALiBi without `causal`; as `causal`.
        Needed only where len_q != len_k.
      mask_block: an element of a bool mask stands for so many queries and keys;
        its shape is then in blocks.
      seqused_k: ``(batch,)`` keys in use of each sequence.
      cu_seqlens_q, cu_seqlens_k: ``(batch + 1,)`` rising from 0: sequence b is
        tokens cu[b] to cu[b + 1] of q (of k and v), whose batch axis is 1.
      block_table: ``(batch, max_pages)`` int32: k and v are pages
        ``(num_pages, heads_kv, page_size, dim)``; needs `seqused_k`.
      enable_gqa: False makes heads_q != heads_kv an error, as in PyTorch.
      threads: 0 = as many as this process may use.
      return_lse: also return the log-sum-exp, float32 ``(batch, heads_q, len_q)``
        (-inf where a query sees no key).
      return_weights: also return softmax's weights, float32 ``(batch, heads_q,
        len_q, len_k)``; slow, on one thread.
      out: where to write: q's shape with v's last axis, q's type; strides are free.

    Returns:
      out, or a tuple (out, lse), (out, weights) or (out, lse, weights). Of torch's
      type if q is a torch tensor, else NumPy's.

    Raises:
      ValueError: with heed's line: the argument, its value, what was expected.
    """
    views = _view(q, "q"), _view(k, "k"), _view(v, "v")
    if out is None:
        kind = views[0][1] if views[0][1] in _array.NAMES else _array.F32
        out, out_view = _array.empty((*views[0][2][:-1], *views[2][2][-1:]), kind, q)
    else:
        _array.check_writable(out, "out")
        out_view = _view(out, "out")
    mask_view = None
    if attn_mask is not None:
        mask_view = _view(attn_mask, "attn_mask")
        if mask_view[2] and mask_view[2][-1] == 1:
            mask_view = _widen(attn_mask, views[1][2], block_table, mask_block)
    extra = None
    if not (
        alibi_slopes is None
        and sinks is None
        and align is None
        and seqused_k is None
        and cu_seqlens_q is None
        and cu_seqlens_k is None
        and block_table is None
        and (causal is None or type(causal) is str or type(causal) is bool)
    ):
        extra = Extra(
            views, causal, align, alibi_slopes, sinks, seqused_k, cu_seqlens_q,
            cu_seqlens_k, block_table,
        )  # fmt: skip
    lse = lse_view = None
    if return_lse:
        lse, lse_view = _array.empty(views[0][2][:-1], _array.F32, q)
    prepared, call = run(
        views, out_view, lse_view, mask_view, extra, causal, scale, window, softcap,
        mask_block, enable_gqa, threads,
    )  # fmt: skip
    result = out
    if return_lse or return_weights:
        result = (out,)
        if return_lse:
            result += (lse,)
        if return_weights:
            result += (weights(prepared, call, q),)
    prepared.give(call)
    return result


def run(
    views, out_view, lse_view, mask_view, extra, causal, scale=None, window=None,
    softcap=None, mask_block=(1, 1), enable_gqa=True, threads=0,
):  # fmt: skip
    """heed.attention on views (q, k, v). Returns the plan and the call, which is to
    be given back to it."""
    key = (
        *views[0][1:4], *views[1][1:4], *views[2][1:4], *out_view[1:4],
        mask_view and mask_view[1:4], scale, window, softcap, mask_block, enable_gqa,
        threads, causal if extra is None else extra.key(),
    )  # fmt: skip
    prepared = _prepared.get(key)
    if prepared is None:
        prepared = _prepare(
            views, out_view, mask_view, extra or Extra(views, causal), scale, window,
            softcap, mask_block, enable_gqa, threads,
        )  # fmt: skip
        _prepared.put(key, prepared)
    call = prepared.take()
    call.q_data = views[0][0]
    call.k_data = views[1][0]
    call.v_data = views[2][0]
    call.out_data = out_view[0]
    call.lse_data = None if lse_view is None else lse_view[0]
    call.mask_data = None if mask_view is None else mask_view[0]
    if extra is not None:
        extra.bind(call)
    prepared.run(call)
    return prepared, call


def _widen(mask, k_shape, block_table, mask_block):
    """The view of a mask of one column, repeated for every key: of all the axes
    only the keys' has to be there."""
    if block_table is not None:
        keys = np.shape(block_table)[-1] * k_shape[-2]
    else:
        keys = k_shape[-2]
    keys = -(-keys // mask_block[1])
    if hasattr(mask, "expand"):  # torch
        wide = mask.expand(*mask.shape[:-1], keys).contiguous()
    else:
        wide = np.repeat(np.asarray(mask), keys, axis=-1)
    return _view(wide, "attn_mask")


def weights(prepared, call, like):
    """Softmax's weights of a call, of the library that `like`, its q, is of."""
    p = prepared.plan.problem
    shape = (p.batch, p.heads_q, p.len_q, p.len_k)
    pattern = np.empty(shape, np.float32)
    if p.ragged:
        # Rows and keys that a sequence has not are not written.
        pattern[...] = 0
    prepared.scores(call, _abi.SCORES_WEIGHTS, pattern)
    missing = 4 - like.ndim
    pattern = pattern.reshape(shape[missing:]) if missing else pattern
    return _array.like(pattern, like)


class Extra:
    """The arrays of a call beside q, k, v, out and mask, and what they say of its
    shape."""

    def __init__(
        self, views, causal, align=None, alibi_slopes=None, sinks=None, seqused_k=None,
        cu_seqlens_q=None, cu_seqlens_k=None, block_table=None,
    ):  # fmt: skip
        self.q, self.q_strides = _layout.rank4(views[0], "q")
        self.k, self.k_strides = _layout.rank4(views[1], "k")
        self.v, self.v_strides = _layout.rank4(views[2], "v")
        self.arrays = {}
        self.page_size = 0
        self.batch, self.len_q, self.len_k = self.q[0], self.q[2], self.k[2]
        if cu_seqlens_q is not None:
            self.batch, self.len_q = self._cumulative("cu_seqlens_q", cu_seqlens_q, self.q)
        if cu_seqlens_k is not None:
            self.batch, self.len_k = self._cumulative("cu_seqlens_k", cu_seqlens_k, self.k)
        if block_table is not None:
            table = _array.array_of(
                block_table, np.int32, "block_table", (self.batch, None)
            )
            self.arrays["block_table"] = table
            self.page_size, self.len_k = self.k[2], table.shape[1] * self.k[2]
            if self.page_size == 0:
                raise ValueError("k has pages of 0 keys; expected 1 or more")
            if seqused_k is None:
                raise ValueError("seqused_k is None; expected each sequence's keys")
        self._check_batch(cu_seqlens_q, cu_seqlens_k)
        if seqused_k is not None:
            self._add("seqused_k", seqused_k, np.int32, self.batch)
        if alibi_slopes is not None:
            self._add("alibi_slopes", alibi_slopes, np.float32, self.q[1])
        if sinks is not None:
            self._add("sinks", sinks, np.float32, self.q[1])
        self.causal_offset = 0
        self.causal = self._placed("causal", causal)
        self.align = 0
        if self.causal == _abi.CAUSAL_NONE:
            self.align = self._placed("align", align)
        elif align is not None:
            raise ValueError(f"align is {align!r}; expected None, since causal says it")

    def _add(self, name, values, dtype, size):
        self.arrays[name] = _array.array_of(values, dtype, name, (size,))

    def _cumulative(self, name, values, shape):
        cumulative = _array.array_of(values, np.int32, name, (None,))
        if len(cumulative) == 0 or shape[0] != 1:
            raise ValueError(
                f"{name} has {len(cumulative)} numbers for {shape[0]} runs of tokens; "
                "expected batch + 1, and 1"
            )
        self.arrays[name] = cumulative
        # The library checks that they rise.
        longest = max(0, int(np.diff(cumulative).max(initial=0)))
        return len(cumulative) - 1, longest

    def _check_batch(self, cu_seqlens_q, cu_seqlens_k):
        sizes = [] if cu_seqlens_q is not None else [("q", self.q[0])]
        if cu_seqlens_k is None and not self.page_size:
            sizes += [("k", self.k[0])]
        for name, size in sizes:
            if size != self.batch:
                raise ValueError(f"{name} has batch {size}; expected {self.batch}")

    def _placed(self, name, value):
        if value is None or value is False:
            return _abi.CAUSAL_NONE
        # Sequences of their own lengths have no one diagonal.
        own = {"seqused_k", "cu_seqlens_q", "cu_seqlens_k"} & self.arrays.keys()
        placement = _layout.placement(value, name, self.len_q, -1 if own else self.len_k)
        if placement == _abi.OFFSET:
            if isinstance(value, numbers.Integral):
                self.causal_offset = int(value)
            else:
                self.arrays["causal_offsets"] = _array.array_of(
                    value, np.int64, name, (self.batch,)
                )
        return placement

    def key(self):
        """What a plan depends on, as far as this knows."""
        return (
            self.batch, self.len_q, self.len_k, self.page_size, self.causal, self.align,
            *self.arrays,
        )  # fmt: skip

    @property
    def ragged(self):
        names = "seqused_k", "cu_seqlens_q", "cu_seqlens_k", "causal_offsets"
        return any(name in self.arrays for name in names)

    def bind(self, call):
        """Points a call at the arrays."""
        call.causal_offset = self.causal_offset
        for name in _core.CALL_ARRAYS:
            if name in self.arrays:
                setattr(call, name, self.arrays[name].ctypes.data)
        table = self.arrays.get("block_table")
        if table is not None:
            _core.set_table(call, table, self.k[0])


def _prepare(
    views, out_view, mask_view, extra, scale, window, softcap, mask_block, enable_gqa,
    threads,
):  # fmt: skip
    """The plan of these views and options, its call laid out. ValueError if they
    do not fit each other."""
    kind = views[0][1]
    _layout.expect_kind(views[1], "k", kind)
    _layout.expect_kind(views[2], "v", kind)
    q, k, v = extra.q, extra.k, extra.v
    if k[3] != q[3]:
        raise ValueError(f"k has shape {views[1][2]}; expected {q[3]} last, as q has")
    if v[:3] != k[:3]:
        raise ValueError(
            f"v has shape {views[2][2]}; expected k's, {views[1][2]}, but for the last"
        )
    if not enable_gqa and q[1] != k[1]:
        raise ValueError(
            f"k has {k[1]} heads and q {q[1]}; expected the same without enable_gqa"
        )

    problem = _core.new_problem()
    problem.batch, problem.heads_q, problem.heads_kv = extra.batch, q[1], k[1]
    problem.len_q, problem.len_k = extra.len_q, extra.len_k
    problem.dim_qk, problem.dim_v, problem.dtype = q[3], v[3], kind
    problem.causal = extra.causal
    problem.scale_mode = _abi.SCALE_INV_SQRT_DIM
    if scale is not None:
        problem.scale_mode, problem.scale = _abi.SCALE_VALUE, scale
    problem.softcap = 0.0 if softcap is None else softcap
    if window is not None:
        problem.window = 1
        problem.window_left, problem.window_right = _layout.window_sides(window)
    problem.alibi = int("alibi_slopes" in extra.arrays)
    problem.sinks = int("sinks" in extra.arrays)
    problem.ragged = int(extra.ragged)
    problem.page_size = extra.page_size
    problem.align = extra.align
    needs_align = (problem.window or problem.alibi) and not problem.causal
    if needs_align and not problem.align:
        if extra.len_q != extra.len_k or extra.ragged:
            raise ValueError(
                f"align is None with {extra.len_q} queries and {extra.len_k} keys; "
                "expected 'top_left', 'bottom_right' or an offset, since a window or "
                "alibi_slopes needs to know where queries stand"
            )
        problem.align = _abi.TOP_LEFT

    call = _core.new_call()
    if mask_view is not None:
        problem.mask = _layout.mask_kind(mask_view, kind)
        problem.mask_block_q, problem.mask_block_k = mask_block
        extent = (
            extra.batch,
            q[1],
            -(-extra.len_q // max(mask_block[0], 1)),
            -(-extra.len_k // max(mask_block[1], 1)),
        )
        _core.set_strides(call, "mask", _layout.mask_strides(mask_view, extent))
    _core.set_strides(call, "q", extra.q_strides)
    _core.set_strides(call, "k", extra.k_strides)
    _core.set_strides(call, "v", extra.v_strides)
    _layout.expect_shape(out_view, "out", (*views[0][2][:-1], v[3]))
    _layout.expect_kind(out_view, "out", kind)
    _core.set_strides(call, "out", _layout.rank4(out_view, "out")[1])
    _core.set_strides(call, "lse", (*_array.dense_strides(q[:3], 1), 1))
    plan = _core.Plan(problem, _core.new_options(threads))
    return _core.Prepared(plan, call)
