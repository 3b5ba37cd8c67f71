"""heed.PagedCache: keys and values of many sequences in pages."""

from __future__ import annotations

import ctypes

import numpy as np

from . import _abi, _array, _core, _layout
from ._attention import attention


class PagedCache:
    """Keys and values of `batch` sequences that grow, in pages of one pool.

        cache = heed.PagedCache(batch=2, heads_kv=8, dim=128, num_pages=64)
        cache.append(k, v, sequences=[0])       # a prompt
        cache.append(k1, v1)                    # a token of each sequence
        out = cache.attend(q1, causal="bottom_right")

    Not for several threads at once, but attend() by many while none appends.

    Attributes:
      k, v: the pool, ``(num_pages, heads_kv, page_size, dim)`` and ``dim_v``.
      lengths: int32 ``(batch,)``, the keys of each sequence.
      block_table: int32 ``(batch, max_pages)``, where they lie; -1 = no page.
    """

    def __init__(
        self,
        batch: int,
        heads_kv: int,
        dim: int,
        num_pages: int,
        *,
        dim_v: int | None = None,
        page_size: int = 16,
        max_pages: int | None = None,
        dtype: str = "float32",
    ):
        """
        Args:
          batch: sequences.
          heads_kv, dim, dim_v: of k and v; `dim_v` None is `dim`.
          num_pages: pages that all sequences share.
          page_size: keys of a page.
          max_pages: pages that one sequence may have; None = all.
          dtype: "float32", "float16" or "bfloat16".
        """
        if str(dtype) not in _array.KINDS:
            raise ValueError(
                f"dtype is {dtype!r}; expected 'float32', 'float16' or 'bfloat16'"
            )
        sizes = {
            "batch": batch, "heads_kv": heads_kv, "dim": dim, "num_pages": num_pages,
            "page_size": page_size,
        }  # fmt: skip
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} is {size}; expected 1 or more")
        self._kind = _array.KINDS[str(dtype)]
        numpy_dtype = _array.numpy_dtype(self._kind)
        dim_v = dim if dim_v is None else dim_v
        self.k = np.zeros((num_pages, heads_kv, page_size, dim), numpy_dtype)
        self.v = np.zeros((num_pages, heads_kv, page_size, dim_v), numpy_dtype)
        self.lengths = np.zeros(batch, np.int32)
        max_pages = num_pages if max_pages is None else max_pages
        self.block_table = np.full((batch, max_pages), -1, np.int32)
        self._free = list(range(num_pages - 1, -1, -1))

    @property
    def page_size(self) -> int:
        return self.k.shape[2]

    @property
    def free_pages(self) -> int:
        """Pages that no sequence has."""
        return len(self._free)

    def append(self, k, v, *, sequences=None) -> None:
        """Adds tokens to the end of sequences, taking pages as they are needed.

        Args:
          k, v: ``(n, heads_kv, tokens, dim)`` and ``dim_v``, of any of the three
            types; converted to the cache's, to nearest even.
          sequences: the n sequences they belong to, each once; None = all.

        Raises:
          ValueError: and nothing has changed.
        """
        rows = self._rows(sequences)
        k_view, v_view = _array.view(k, "k"), _array.view(v, "v")
        k_shape, k_strides = _layout.rank4(k_view, "k")
        v_shape, v_strides = _layout.rank4(v_view, "v")
        _layout.expect_kind(v_view, "v", k_view[1])
        tokens = k_shape[2]
        heads_kv, dim, dim_v = self.k.shape[1], self.k.shape[3], self.v.shape[3]
        for name, shape, width in (("k", k_shape, dim), ("v", v_shape, dim_v)):
            want = (len(rows), heads_kv, tokens, width)
            if shape != want:
                raise ValueError(f"{name} has shape {shape}; expected {want}")
        table, taken = self._grow(rows, tokens)
        positions = np.ascontiguousarray(self.lengths[rows])

        a = _abi.Append()
        _core.library.heed_append_init(ctypes.addressof(a))
        a.batch, a.heads_kv, a.len_new = len(rows), heads_kv, tokens
        a.dim_qk, a.dim_v = dim, dim_v
        a.dtype_new, a.dtype_cache = k_view[1], self._kind
        a.k_new_data, a.v_new_data = k_view[0], v_view[0]
        a.k_cache_data, a.v_cache_data = self.k.ctypes.data, self.v.ctypes.data
        _core.set_strides(a, "k_new", k_strides)
        _core.set_strides(a, "v_new", v_strides)
        _core.set_strides(a, "k_cache", _array.dense_strides(self.k.shape, 1))
        _core.set_strides(a, "v_cache", _array.dense_strides(self.v.shape, 1))
        a.positions_i32 = positions.ctypes.data
        a.page_size = self.page_size
        _core.set_table(a, table, len(self.k))
        _core.check(_core.library.heed_kv_append(ctypes.addressof(a)))
        if taken:
            del self._free[-taken:]
        self.block_table[rows] = table
        self.lengths[rows] += tokens

    def attend(self, q, *, sequences=None, **options):
        """Attention of queries to their sequences' keys.

        Args:
          q: ``(n, heads_q, tokens, dim)``.
          sequences: the n sequences they belong to; None = all.
          options: of `heed.attention`, such as ``causal="bottom_right"`` where a
            sequence's last keys are the queries' own.

        Returns:
          As `heed.attention`.
        """
        rows = self._rows(sequences)
        return attention(
            q,
            self.k,
            self.v,
            seqused_k=self.lengths[rows],
            block_table=self.block_table[rows],
            **options,
        )

    def free(self, sequence: int) -> None:
        """Empties a sequence; its pages are free again."""
        row = int(self._rows([sequence])[0])
        pages = self.block_table[row]
        self._free.extend(int(page) for page in pages[pages >= 0][::-1])
        self.block_table[row] = -1
        self.lengths[row] = 0

    def _rows(self, sequences):
        batch = len(self.lengths)
        if sequences is None:
            return np.arange(batch)
        rows = np.atleast_1d(np.asarray(sequences, np.int64))
        if rows.size and (rows.min() < 0 or rows.max() >= batch):
            raise ValueError(f"sequences is {sequences}; expected 0 to {batch - 1}")
        if len(set(rows.tolist())) != len(rows):
            raise ValueError(f"sequences is {sequences}; expected each once")
        return rows

    def _grow(self, rows, tokens):
        """The rows' tables with pages for so many more tokens, and how many of
        `_free`, from its end, they take."""
        table = np.ascontiguousarray(self.block_table[rows])
        taken = 0
        for i, row in enumerate(rows):
            have = -(-int(self.lengths[row]) // self.page_size)
            need = -(-(int(self.lengths[row]) + tokens) // self.page_size)
            if need > table.shape[1]:
                raise ValueError(
                    f"sequence {row} would have {need} pages; expected at most "
                    f"max_pages, {table.shape[1]}"
                )
            if taken + need - have > len(self._free):
                raise ValueError(
                    f"{tokens} tokens for each of {len(rows)} sequences need more pages "
                    f"than are free, {len(self._free)} of {len(self.k)}"
                )
            for page in range(have, need):
                taken += 1
                table[i, page] = self._free[-taken]
        return table, taken
