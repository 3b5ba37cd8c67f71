"""heed.Plan: one problem, run many times."""

from __future__ import annotations

import numpy as np

from . import _abi, _array, _core, _layout

_TUNING = {"auto": _abi.TUNING_AUTO, "off": _abi.TUNING_OFF}


class Plan:
    """What is the same for all calls of one shape, worked out once.

        plan = heed.Plan("b1_hq32_hkv8_q2048_k2048_d128_causal_f32")
        out = plan.run(q, k, v)

    A plan does not change; any number of threads may run it at once.
    """

    def __init__(
        self,
        problem: str,
        *,
        threads: int = 0,
        tuning: str = "auto",
        tile: dict[str, int] | None = None,
        target: str | None = None,
    ):
        """
        Args:
          problem: the problem string, README "Problem strings":
            ``b<batch>_hq<query heads>_hkv<kv heads>_q<queries>_k<keys>_d<dim>``, then
            ``_causal`` and so on, and ``_f32``, ``_f16`` or ``_bf16``.
          threads: 0 = as many as this process may use.
          tuning: ``"auto"``: this machine's record where there is one, else the
            model of its caches; ``"off"``: the model.
          tile: row_block, key_tile, pack_k, pack_v, prefetch, tasks_per_thread,
            decode_below, as heed_tile; what is missing or 0 is the model's. No tile changes a result.
          target: a SIMD target of ``heed.info()["targets"]``; None = the best.

        Raises:
          ValueError: with heed's line.
        """
        if tuning not in _TUNING:
            raise ValueError(f"tuning is {tuning!r}; expected 'auto' or 'off'")
        parsed = _core.parse_problem(problem)
        options = _core.new_options(threads, _TUNING[tuning], tile, target)
        self._plan = _core.Plan(parsed, options)
        self._layouts = _core.Cache(64)
        self._asks_for_arrays = bool(parsed.alibi or parsed.sinks or parsed.page_size)
        self._dim_v, self._kind = parsed.dim_v, parsed.dtype

    @property
    def problem(self) -> str:
        """The problem string."""
        return _core.print_problem(self._plan.problem)

    @property
    def workspace_size(self) -> int:
        """Bytes of scratch that a run uses; the package keeps them per thread."""
        return self._plan.workspace_size

    def describe(self) -> str:
        """One line: problem, target, threads, tile and where it came from."""
        return self._plan.describe()

    def __repr__(self):
        return f"heed.Plan({self.problem!r})"

    def run(
        self,
        q,
        k,
        v,
        *,
        attn_mask=None,
        alibi_slopes=None,
        sinks=None,
        causal_offset: int = 0,
        causal_offsets=None,
        seqused_k=None,
        cu_seqlens_q=None,
        cu_seqlens_k=None,
        block_table=None,
        return_lse: bool = False,
        out=None,
    ):
        """Computes. Arrays and shapes as in `heed.attention`, and as the problem
        says; what it asks for has to be there, what it does not is not allowed.

        Args:
          causal_offset: of a problem with ``causaloff`` or ``alignoff``.
          causal_offsets: ``(batch,)``, instead, if the problem is ``ragged``.

        Returns:
          out, or (out, lse) if `return_lse`.

        Raises:
          ValueError: with heed's line.
        """
        views = _array.view(q, "q"), _array.view(k, "k"), _array.view(v, "v")
        out_view = mask_view = None
        if out is not None:
            _array.check_writable(out, "out")
            out_view = _array.view(out, "out")
        if attn_mask is not None:
            mask_view = _array.view(attn_mask, "attn_mask")
        arrays, packed_q, packed_k = None, None, None
        if self._asks_for_arrays or not (
            alibi_slopes is None
            and sinks is None
            and seqused_k is None
            and cu_seqlens_q is None
            and cu_seqlens_k is None
            and causal_offsets is None
            and block_table is None
        ):
            extras = {
                "alibi_slopes": alibi_slopes,
                "sinks": sinks,
                "seqused_k": seqused_k,
                "cu_seqlens_q": cu_seqlens_q,
                "cu_seqlens_k": cu_seqlens_k,
                "causal_offsets": causal_offsets,
                "block_table": block_table,
            }
            arrays = self._arrays({n: x for n, x in extras.items() if x is not None})
            packed_q = arrays["cu_seqlens_q"][-1] if "cu_seqlens_q" in arrays else None
            packed_k = arrays["cu_seqlens_k"][-1] if "cu_seqlens_k" in arrays else None
        key = (
            *views[0][1:4], *views[1][1:4], *views[2][1:4],
            mask_view and mask_view[1:4], out_view and out_view[1:4], packed_q, packed_k,
        )  # fmt: skip
        prepared = self._layouts.get(key)
        if prepared is None:
            prepared = self._lay_out(views, mask_view, out_view, packed_q, packed_k)
            self._layouts.put(key, prepared)

        call = prepared.take()
        call.q_data, call.k_data, call.v_data = views[0][0], views[1][0], views[2][0]
        call.mask_data = None if mask_view is None else mask_view[0]
        call.causal_offset = causal_offset
        if arrays:
            for name in _core.CALL_ARRAYS:
                array = arrays.get(name)
                setattr(call, name, None if array is None else array.ctypes.data)
            if "block_table" in arrays:
                _core.set_table(call, arrays["block_table"], views[1][2][0])
        if out is None:
            shape = (*views[0][2][:-1], self._dim_v)
            out, fresh = _array.empty(shape, self._kind, q)
            call.out_data = fresh[0]
        else:
            call.out_data = out_view[0]
        lse = call.lse_data = None
        if return_lse:
            lse, lse_view = _array.empty(views[0][2][:-1], _array.F32, q)
            call.lse_data = lse_view[0]
        prepared.run(call)
        if not arrays:
            prepared.give(call)
        return (out, lse) if return_lse else out

    def _arrays(self, given):
        """The arrays beside q, k and v as the library reads them."""
        p = self._plan.problem
        shapes = {
            "alibi_slopes": (np.float32, (p.heads_q,), p.alibi),
            "sinks": (np.float32, (p.heads_q,), p.sinks),
            "seqused_k": (np.int32, (p.batch,), p.ragged),
            "cu_seqlens_q": (np.int32, (p.batch + 1,), p.ragged),
            "cu_seqlens_k": (np.int32, (p.batch + 1,), p.ragged),
            "causal_offsets": (np.int64, (p.batch,), p.ragged),
            "block_table": (np.int32, (p.batch, None), p.page_size),
        }
        for name in given:
            if not shapes[name][2]:
                raise ValueError(f"{name} is given; {self.problem} has none")
        for name in ("alibi_slopes", "sinks", "block_table"):
            if shapes[name][2] and name not in given:
                raise ValueError(f"{name} is None; {self.problem} needs one")
        return {
            name: _array.array_of(values, shapes[name][0], name, shapes[name][1])
            for name, values in given.items()
        }

    def _lay_out(self, views, mask_view, out_view, packed_q, packed_k):
        """A call with these tensors' strides. ValueError if the problem has others."""
        p = self._plan.problem
        queries = (p.batch, p.heads_q, p.len_q)
        if packed_q is not None:
            queries = (1, p.heads_q, int(packed_q))
        keys = (p.batch, p.heads_kv, p.len_k)
        if packed_k is not None:
            keys = (1, p.heads_kv, int(packed_k))
        elif p.page_size:
            keys = (views[1][2][0], p.heads_kv, p.page_size)
        call = _core.new_call()
        self._set(call, "q", views[0], (*queries, p.dim_qk))
        self._set(call, "k", views[1], (*keys, p.dim_qk))
        self._set(call, "v", views[2], (*keys, p.dim_v))
        if out_view is None:
            strides = _array.dense_strides((*queries, p.dim_v), 1)
            _core.set_strides(call, "out", strides)
        else:
            self._set(call, "out", out_view, (*queries, p.dim_v))
        _core.set_strides(call, "lse", (*_array.dense_strides(queries, 1), 1))
        self._set_mask(call, mask_view)
        return _core.Prepared(self._plan, call)

    def _set(self, call, name, view, shape):
        found, strides = _layout.rank4(view, name)
        if found != shape:
            raise ValueError(f"{name} has shape {view[2]}; expected {shape}")
        kind = self._plan.problem.dtype
        if view[1] != kind:
            raise ValueError(
                f"{name} has type {_array.NAMES[view[1]]}; expected {_array.NAMES[kind]}"
            )
        _core.set_strides(call, name, strides)

    def _set_mask(self, call, view):
        p = self._plan.problem
        if (view is not None) != (p.mask != _abi.MASK_NONE):
            expected = "a mask" if p.mask else "none"
            raise ValueError(f"attn_mask: {self.problem} expects {expected}")
        if view is None:
            return
        kind = _layout.mask_kind(view, p.dtype)
        # Of float32 the type's own mask is a float32 one.
        own = p.dtype == _array.F32 and p.mask == _abi.MASK_DTYPE
        if kind != (_abi.MASK_F32 if own else p.mask):
            raise ValueError(
                f"attn_mask has type {_array.NAMES[view[1]]}; {self.problem} expects "
                "another"
            )
        extent = (
            p.batch,
            p.heads_q,
            -(-p.len_q // max(p.mask_block_q, 1)),
            -(-p.len_k // max(p.mask_block_k, 1)),
        )
        _core.set_strides(call, "mask", _layout.mask_strides(view, extent))
