"""heed.attention against the formula, for every option and every layout."""

import numpy as np
import pytest
import reference

import heed

B, HQ, HKV, TQ, TK, D, DV = 2, 6, 2, 19, 37, 24, 20


@pytest.fixture
def qkv(rng):
    return (
        rng.standard_normal((B, HQ, TQ, D)).astype(np.float32),
        rng.standard_normal((B, HKV, TK, D)).astype(np.float32),
        rng.standard_normal((B, HKV, TK, DV)).astype(np.float32),
    )


def close(got, want, tolerance=2e-6):
    assert np.abs(np.asarray(got, np.float64) - want).max(initial=0) <= tolerance


OFFSETS = {"top_left": 0, "bottom_right": TK - TQ, 3: 3, -2: -2, None: None, False: None}


@pytest.mark.parametrize("causal", OFFSETS)
@pytest.mark.parametrize("scale", [None, 0.3, 0.0, -0.5])
def test_causal_lines_and_scales(qkv, causal, scale):
    seen = reference.visible(TQ, TK, OFFSETS[causal])
    want = reference.attention(*qkv, scale=scale, seen=seen)
    out, lse, weights = heed.attention(
        *qkv, scale=scale, causal=causal, return_lse=True, return_weights=True
    )
    close(out, want[0])
    close(weights, want[2])
    np.testing.assert_allclose(lse, want[1], rtol=2e-6, atol=2e-6)
    assert (weights[..., ~seen] == 0).all()


def test_a_square_causal_line_may_be_called_true(rng):
    x = rng.standard_normal((1, 2, 9, 8)).astype(np.float32)
    want = reference.attention(x, x, x, seen=reference.visible(9, 9, 0))[0]
    close(heed.attention(x, x, x, causal=True), want)


@pytest.mark.parametrize("window", [(3, 0), (0, 0), (5, 2), (None, 1), (4, None), (-1, -1)])
@pytest.mark.parametrize("align", ["top_left", "bottom_right", 5])
def test_windows(qkv, window, align):
    offset = {"top_left": 0, "bottom_right": TK - TQ}.get(align, align)
    seen = reference.visible(TQ, TK, None, window, offset)
    want = reference.attention(*qkv, seen=seen)[0]
    close(heed.attention(*qkv, window=window, align=align), want)
    seen = reference.visible(TQ, TK, offset, window)
    want = reference.attention(*qkv, seen=seen)[0]
    close(heed.attention(*qkv, window=window, causal=align), want)


def test_softcap_alibi_and_sinks(qkv, rng):
    slopes = rng.random(HQ).astype(np.float32) / 4
    sinks = rng.standard_normal(HQ)  # float64: converted
    i, j = np.arange(TQ)[:, None], np.arange(TK)[None, :]
    bias = slopes[:, None, None] * (j - (i + TK - TQ))
    want = reference.attention(*qkv, softcap=2.0, bias=bias, sinks=sinks)
    got = heed.attention(
        *qkv, softcap=2.0, alibi_slopes=slopes, sinks=sinks, align="bottom_right",
        return_lse=True, return_weights=True,
    )  # fmt: skip
    for x, y in zip(got, want):
        close(x, y, 4e-6)


SHAPES = [
    (TQ, TK), (1, TK), (TQ, 1), (1, 1), (TK,), (1,), (HQ, 1, TK), (HQ, TQ, TK),
    (1, HQ, TQ, 1), (B, 1, 1, TK), (B, 1, TQ, TK), (B, HQ, TQ, TK),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", [bool, np.uint8, np.float32])
def test_masks_of_every_shape(qkv, rng, shape, kind):
    if kind is np.float32:
        mask = rng.standard_normal(shape).astype(np.float32)
        mask[rng.random(shape) < 0.3] = -np.inf
        want = reference.attention(*qkv, bias=mask)[0]
    else:
        mask = (rng.random(shape) < 0.6).astype(kind) * kind(3)
        want = reference.attention(*qkv, seen=np.broadcast_to(mask != 0, (B, HQ, TQ, TK)))[0]
    close(heed.attention(*qkv, attn_mask=mask), want)


def test_mask_blocks(qkv, rng):
    mask = rng.random((3, 5)) < 0.5
    full = np.repeat(np.repeat(mask, 8, 0), 8, 1)[:TQ, :TK]
    want = reference.attention(*qkv, seen=full)[0]
    close(heed.attention(*qkv, attn_mask=mask, mask_block=(8, 8)), want)


def test_layouts_are_read_and_written_where_they_lie(qkv):
    want = heed.attention(*qkv)
    q, k, v = qkv
    # tokens before heads; every other of a longer one; backwards; broadcast heads
    q2 = np.ascontiguousarray(q.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    k2 = np.repeat(k, 2, axis=2)[:, :, ::2]
    v2 = np.ascontiguousarray(v[:, :, ::-1])[:, :, ::-1]
    room = np.full((B, TQ, HQ, DV + 3), 7, np.float32)
    out = room.transpose(0, 2, 1, 3)[..., :DV]
    result = heed.attention(q2, k2, v2, out=out)
    assert result is out
    assert (out == want).all()
    assert (room[..., DV:] == 7).all()
    one = np.broadcast_to(k[:, :1], k.shape)
    close(heed.attention(q, one, v), reference.attention(q, one, v)[0])


def test_axes_in_front_are_optional(qkv):
    q, k, v = qkv
    want = heed.attention(q, k, v)
    q3, k3, v3 = q[1], k[1], v[1]
    out, lse, weights = heed.attention(q3, k3, v3, return_lse=True, return_weights=True)
    assert out.shape == (HQ, TQ, DV) and lse.shape == (HQ, TQ)
    assert weights.shape == (HQ, TQ, TK)
    assert (out == want[1]).all()
    assert (heed.attention(q3[2], k3[0], v3[0]) == want[1, 2]).all()


@pytest.mark.parametrize("dtype,tolerance", [(np.float16, 2e-3), ("bfloat16", 2e-2)])
def test_half_precisions(qkv, dtype, tolerance):
    if dtype == "bfloat16":
        bits = [bf16_bits(x) for x in qkv]
        want = reference.attention(*(bf16_values(x) for x in bits))[0]
        out = heed.attention(*bits)
        assert out.dtype == np.uint16
        close(bf16_values(out), want, tolerance)
        # A mask of the type itself.
        mask = bf16_bits(np.linspace(-2, 2, TK, dtype=np.float32))
        want = reference.attention(*(bf16_values(x) for x in bits), bias=bf16_values(mask))
        close(bf16_values(heed.attention(*bits, attn_mask=mask)), want[0], tolerance)
    else:
        q, k, v = (x.astype(dtype) for x in qkv)
        out = heed.attention(q, k, v)
        assert out.dtype == dtype
        close(out, reference.attention(q, k, v)[0], tolerance)


def bf16_bits(x):
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def bf16_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def test_ml_dtypes_bfloat16(qkv):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    arrays = [bf16_bits(x).view(ml_dtypes.bfloat16) for x in qkv]
    out = heed.attention(*arrays)
    assert out.dtype == ml_dtypes.bfloat16
    assert (out.view(np.uint16) == heed.attention(*(bf16_bits(x) for x in qkv))).all()


class OnlyInterface:
    """An array that is none of NumPy's but says where it lies."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


class OnlyDlpack:
    def __init__(self, array):
        self.array = array
        self.ndim = array.ndim

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrap", [OnlyInterface, OnlyDlpack])
def test_foreign_arrays_are_not_copied(qkv, wrap):
    q, k, v = qkv
    want = heed.attention(q, k, v)
    strided = np.ascontiguousarray(q.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    assert (heed.attention(wrap(strided), wrap(k), wrap(v)) == want).all()
    out = np.zeros_like(want)
    heed.attention(q, k, v, out=wrap(out))
    assert (out == want).all()


@pytest.mark.parametrize("q,k", [(0, 5), (5, 0), (0, 0)])
def test_sizes_of_zero(q, k):
    out, lse = heed.attention(
        np.ones((1, 2, q, 8), np.float32), np.ones((1, 2, k, 8), np.float32),
        np.ones((1, 2, k, 8), np.float32), return_lse=True,
    )  # fmt: skip
    assert out.shape == (1, 2, q, 8) and (out == 0).all()
    assert (lse == -np.inf).all()


def test_no_width_weighs_all_keys_alike(rng):
    v = rng.standard_normal((1, 1, 7, 3)).astype(np.float32)
    q, k = np.ones((1, 1, 2, 0), np.float32), np.ones((1, 1, 7, 0), np.float32)
    close(heed.attention(q, k, v)[0, 0, 0], v[0, 0].mean(0))


def test_what_is_hidden_has_no_influence(qkv):
    q, k, v = qkv
    want = heed.attention(q, k, v, causal=0)
    k, v = k.copy(), v.copy()
    k[:, :, TQ:], v[:, :, TQ:] = np.nan, np.inf
    assert (heed.attention(q, k, v, causal=0) == want).all()


def test_bits_do_not_depend_on_threads(rng):
    x = rng.standard_normal((1, 4, 300, 64)).astype(np.float32)
    one = heed.attention(x, x, x, causal=True, threads=1)
    assert (heed.attention(x, x, x, causal=True, threads=3) == one).all()


def test_packed_sequences(rng):
    cu_q, cu_k = np.array([0, 5, 5, 12]), np.array([0, 9, 11, 31])
    q = rng.standard_normal((1, HQ, 12, D)).astype(np.float32)
    k = rng.standard_normal((1, HKV, 31, D)).astype(np.float32)
    out = heed.attention(
        q, k, k, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, causal="bottom_right"
    )
    for b in range(3):
        rows, keys = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        one = heed.attention(q[:, :, rows], k[:, :, keys], k[:, :, keys], causal="bottom_right")
        assert (out[:, :, rows] == one).all()


def test_lengths_and_offsets_of_each_sequence(qkv):
    q, k, v = qkv
    used, offsets = [11, 30], [4, -1]
    out, weights = heed.attention(
        q, k, v, seqused_k=used, causal=np.array(offsets), return_weights=True
    )
    for b in range(B):
        n = used[b]
        one = heed.attention(q[b], k[b, :, :n], v[b, :, :n], causal=offsets[b])
        assert (out[b] == one).all()
        assert (weights[b, :, :, n:] == 0).all()


def test_the_tuple_follows_what_was_asked_for(qkv):
    assert isinstance(heed.attention(*qkv), np.ndarray)
    assert len(heed.attention(*qkv, return_lse=True)) == 2
    out, weights = heed.attention(*qkv, return_weights=True)
    assert weights.shape == (B, HQ, TQ, TK)
