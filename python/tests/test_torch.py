"""heed.torch against PyTorch: its CPU grid, its errors, and what is handed back."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import torch.nn.functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

import heed  # noqa: E402
import heed.torch as ht  # noqa: E402

sdpa = ht.scaled_dot_product_attention
pytorch = F.scaled_dot_product_attention

# PyTorch's own, test_transformers.py: absolute, relative.
TOLERANCES = {
    torch.float32: (1e-5, 5e-6),
    torch.bfloat16: (5e-2, 5e-2),
    torch.float16: (1e-2, 1e-2),
}


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(7)
    ht.reset_counts()
    with torch.no_grad():
        yield
    assert F.scaled_dot_product_attention is pytorch


def math_backend(q, k, v, mask=None, causal=False, gqa=False, scale=None):
    """The math backend in float32, a sequence at a time: its scores are large."""
    parts = []
    for b in range(q.shape[0] if q.dim() > 2 else 1):
        part = slice(b, b + 1) if q.dim() > 2 else slice(None)
        own = mask
        if own is not None:
            own = own[part] if own.dim() == q.dim() and own.shape[0] > 1 else own
            own = own if own.dtype == torch.bool else own.float()
        with sdpa_kernel(SDPBackend.MATH):
            one = pytorch(
                q[part].float(), k[part].float(), v[part].float(), own, is_causal=causal,
                enable_gqa=gqa, scale=scale,
            )  # fmt: skip
        parts.append(one.to(q.dtype))
    return torch.cat(parts) if parts else torch.empty(*q.shape[:-1], v.shape[-1], dtype=q.dtype)


def check(q, k, v, mask=None, causal=False, gqa=False, scale=None):
    before = ht.counts()
    got = sdpa(q, k, v, mask, is_causal=causal, enable_gqa=gqa, scale=scale)
    assert ht.counts().get("heed", 0) == before.get("heed", 0) + 1, ht.counts()
    want = math_backend(q, k, v, mask, causal, gqa, scale)
    assert got.dtype == want.dtype and got.shape == want.shape
    absolute, relative = TOLERANCES[q.dtype]
    torch.testing.assert_close(got, want, atol=absolute, rtol=relative)
    return got


def mask_shapes(batch, heads, len_q, len_k):
    rows = [(len_q, len_k), (1, len_k), (len_q, 1), (1, 1)]
    fronts = [(), (1,), (heads,), (1, 1), (batch, 1), (1, heads), (batch, heads)]
    return [front + row for front in fronts for row in rows]


def make_mask(shape, dtype, kind):
    hidden = torch.rand(shape) < 0.3
    if kind == "bool":
        return ~hidden
    mask = torch.randn(shape, dtype=dtype if kind == "own" else torch.float32)
    return mask.masked_fill_(hidden, -math.inf)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("heads", [(1, 1), (3, 3), (65, 5), (16, 4), (27, 1), (5, 1)], ids=str)
@pytest.mark.parametrize("len_k", [17, 514])
@pytest.mark.parametrize("len_q", [11, 514, 1030])
@pytest.mark.parametrize("batch", [2, 12])
def test_pytorchs_cpu_grid(batch, len_q, len_k, heads, dtype):
    if batch == 12 and heads[0] > 3 and len_q * len_k > 200_000:
        batch = 3  # the math backend would take a minute
    q = torch.randn(batch, heads[0], len_q, 8, dtype=dtype)
    k = torch.randn(batch, heads[1], len_k, 8, dtype=dtype)
    v = torch.randn(batch, heads[1], len_k, 8, dtype=dtype)
    gqa = heads[0] != heads[1]
    check(q, k, v, gqa=gqa)
    check(q, k, v, causal=True, gqa=gqa)
    shapes = mask_shapes(batch, heads[0], len_q, len_k)
    # All of them where that is quick, and everywhere another three.
    small = batch * heads[0] * len_q * len_k < 50_000
    start = (batch + len_q + len_k + heads[0]) % len(shapes)
    for i, shape in enumerate(shapes if small else (shapes[start:] + shapes)[:3]):
        kind = ("bool", "own", "f32")[(i + start) % 3]
        check(q, k, v, make_mask(shape, dtype, kind), gqa=gqa)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [2, 8])
def test_the_four_lines_of_the_documentation(heads, causal):
    tensors = torch.randn(3, 2, heads, 150, 64).unbind()

    def four_lines(q, k, v):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if causal:
            scores = scores.masked_fill(torch.ones(150, 150).tril() == 0, -math.inf)
        return F.softmax(scores, dim=-1) @ v

    got = sdpa(*tensors, is_causal=causal)
    exact = four_lines(*(x.double() for x in tensors))
    assert (got - exact).abs().max() <= 1e-6
    # In float32 the lines have as much of an error of their own.
    want = four_lines(*tensors)
    assert ((got - want).abs() <= 1e-6 * want.abs().clamp(min=1)).all()


@pytest.mark.parametrize("scale", [0.0, -0.3, 2, 0.125])
def test_scales(scale):
    q, k = torch.randn(2, 3, 9, 8), torch.randn(2, 3, 12, 8)
    check(q, k, k, scale=scale)


@pytest.mark.parametrize("kind", ["bool", "f32"])
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_rows_that_see_nothing_are_zero(dtype, kind):
    q, k = torch.randn(2, 4, 9, 8, dtype=dtype), torch.randn(2, 4, 12, 8, dtype=dtype)
    mask = torch.rand(9, 12) < 0.5
    mask[3], mask[8] = False, False
    if kind == "f32":
        mask = torch.zeros(9, 12).masked_fill(~mask, -math.inf)
    got = check(q, k, k, mask)
    assert (got[:, :, 3] == 0).all() and (got[:, :, 8] == 0).all()


@pytest.mark.parametrize("causal", [False, True])
def test_ranks_and_layouts(causal):
    x = torch.randn(4, 20, 8)
    check(x, x, x, causal=causal)
    check(x, x, x, torch.rand(20, 20) < 0.5)
    check(x, x, x, torch.rand(4, 1, 20) < 0.5)
    check(x[0], x[0], x[0], causal=causal)
    y = torch.randn(2, 3, 4, 20, 8)
    check(y, y, y, causal=causal)
    check(y, y, y, torch.rand(4, 20, 20) < 0.5)
    # [batch, tokens, heads, dim] seen as PyTorch wants it
    z = torch.randn(2, 20, 4, 8).transpose(1, 2)
    check(z, z, z, causal=causal)
    # dim before tokens: the last axis is not dense
    z = torch.randn(2, 4, 8, 20).transpose(2, 3)
    check(z, z, z, causal=causal)
    one = torch.randn(2, 1, 20, 8).expand(2, 4, 20, 8)
    check(one, one, one, causal=causal)
    mask = (torch.rand(1, 20, 1, 1) < 0.7).transpose(1, 3).expand(2, 4, 20, 20)
    check(z, z, z, mask)
    mask = (torch.rand(20, 20) < 0.7).t()
    check(z, z, z, mask)


@pytest.mark.parametrize("sizes", [(0, 2, 5, 6), (2, 0, 5, 6), (2, 2, 0, 6), (2, 2, 5, 0)])
def test_sizes_of_zero(sizes):
    batch, heads, len_q, len_k = sizes
    q, k = torch.randn(batch, heads, len_q, 8), torch.randn(batch, heads, len_k, 8)
    got = sdpa(q, k, k)
    assert got.shape == q.shape and (got == 0).all()
    assert torch.equal(got, pytorch(q, k, k))


def test_no_width_is_pytorchs():
    q, v = torch.randn(1, 1, 3, 0), torch.randn(1, 1, 3, 4)
    torch.testing.assert_close(sdpa(q, q, v), pytorch(q, q, v), equal_nan=True)
    assert ht.counts() == {"heads of no width": 1}


def bad_calls():
    q = torch.randn(2, 4, 5, 8)
    yield "mask with is_causal", (q, q, q, torch.ones(5, 5, dtype=torch.bool)), {"is_causal": True}
    yield "mask dtype", (q, q, q, torch.ones(5, 5, dtype=torch.int64)), {}
    yield "mask dtype", (q, q, q, torch.ones(5, 5, dtype=torch.float64)), {}
    yield "mask shape", (q, q, q, torch.ones(5, 6, dtype=torch.bool)), {}
    yield "shapes", (q, q[..., :4], q), {}
    yield "shapes", (q, q[:, :3], q[:, :3]), {}
    yield "shapes", (q, q[:, :3], q[:, :3]), {"enable_gqa": True}
    yield "dtype", (q, q.double(), q), {}
    yield "rank", (q[0, 0, 0], q, q), {}
    yield "dropout", (q, q, q), {"dropout_p": 1.5}


@pytest.mark.parametrize("why,arguments,options", list(bad_calls()))
def test_errors_are_pytorchs(why, arguments, options):
    with pytest.raises(Exception) as want:
        pytorch(*arguments, **options)
    with pytest.raises(type(want.value)) as got:
        sdpa(*arguments, **options)
    assert str(got.value) == str(want.value)
    assert ht.counts() == {why: 1}


def test_what_heed_does_not_do_goes_back():
    q = torch.randn(2, 4, 5, 8)
    cases = [
        ("dtype", (q.double(),) * 3, {}),
        ("dropout", (q, q, q), {"dropout_p": 0.5}),
        ("device or layout", (q.to("meta"),) * 3, {}),
        ("scale", (q, q, q), {"scale": math.inf}),
        ("mask rank", (q[0], q[0], q[0], torch.ones(1, 1, 5, 5, dtype=torch.bool)), {}),
        ("shapes", (q, q[:, :1], q[:, :1]), {}),  # heads that broadcast without enable_gqa
    ]
    for why, arguments, options in cases:
        ht.reset_counts()
        got = sdpa(*arguments, **options)
        assert got.shape == torch.Size([*arguments[0].shape[:-1], 8])
        assert ht.counts() == {why: 1}


def test_what_needs_a_gradient_goes_back():
    q = torch.randn(2, 4, 5, 8)
    with torch.enable_grad():
        leaf = q.clone().requires_grad_()
        sdpa(leaf, q, q).sum().backward()
        assert leaf.grad is not None and ht.counts() == {"autograd": 1}
        mask = torch.zeros(5, 5, requires_grad=True)
        assert sdpa(q, q, q, mask).requires_grad
        sdpa(q, q, q)
        assert ht.counts() == {"autograd": 2, "heed": 1}
        with torch.no_grad():
            for _ in range(2):
                assert not sdpa(leaf, q, q).requires_grad
        assert sdpa(leaf, q, q).requires_grad
        assert ht.counts() == {"autograd": 3, "heed": 3}
        with pytest.raises(RuntimeError, match="no backward pass"):
            torch.ops.heed.scaled_dot_product_attention(leaf, q, q).sum().backward()


def test_transforms_and_traces_go_back():
    x = torch.randn(3, 2, 4, 5, 8)
    got = torch.vmap(lambda y: sdpa(y, y, y))(x)
    torch.testing.assert_close(got, pytorch(x, x, x), atol=1e-5, rtol=1e-5)
    assert ht.counts() == {"function transform": 1}
    ht.reset_counts()
    traced = torch.jit.trace(lambda y: sdpa(y, y, y), x[0], check_trace=False)
    torch.testing.assert_close(traced(x[1]), pytorch(x[1], x[1], x[1]))
    assert "tracing" in ht.counts()


def test_sparse_and_nested_tensors_go_back():
    x = torch.randn(4, 5, 8)
    for _ in range(2):
        with pytest.raises(Exception):
            sdpa(x.to_sparse(), x, x)
    nested = torch.nested.nested_tensor(
        [torch.randn(5, 2, 8), torch.randn(3, 2, 8)], layout=torch.jagged
    ).transpose(1, 2)
    sdpa(*(nested,) * 3)
    assert "heed" not in ht.counts()


def test_negative_views():
    x = torch.randn(2, 4, 5, 8, dtype=torch.complex64).conj().imag
    assert x.is_neg()
    for _ in range(2):
        torch.testing.assert_close(sdpa(x, x, x), pytorch(x, x, x), atol=1e-5, rtol=1e-5)
    y = torch.view_as_real(torch.randn(2, 4, 5, 8, dtype=torch.complex64)).unbind(-1)[1]
    sdpa(y, y, y)


def test_autocast():
    x = torch.randn(2, 4, 50, 8)
    sdpa(x, x, x)
    with torch.autocast("cpu", torch.bfloat16):
        got = sdpa(x, x, x, torch.randn(50, 50))
        assert got.dtype == torch.bfloat16
        assert pytorch(x, x, x).dtype == sdpa(x, x, x).dtype == torch.bfloat16
    assert ht.counts() == {"heed": 3}


def test_enable_routes_the_function_and_gives_it_back():
    attention = torch.nn.MultiheadAttention(32, 4, batch_first=True).eval()
    # The module's own fast path does not call the function at all; this mask avoids it.
    mask = torch.ones(9, 9).triu(1).bool()
    x = torch.randn(2, 9, 32)
    with torch.enable_grad():
        want = attention(x, x, x, attn_mask=mask, need_weights=False)[0]
    with ht.enable() as counts:
        assert F.scaled_dot_product_attention is sdpa
        with torch.enable_grad():
            got = attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        assert counts == {"autograd": 1}
        y = torch.randn(2, 4, 9, 8)
        F.scaled_dot_product_attention(y, y, y)
        assert counts == {"autograd": 1, "heed": 1}
    torch.testing.assert_close(got, want)
    assert F.scaled_dot_product_attention is pytorch
    ht.enable()
    assert F.scaled_dot_product_attention is sdpa
    ht.disable()


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_does_not_break_the_graph(dynamic):
    def model(q, k, v, mask):
        a = sdpa(q * 2, k, v, is_causal=True)
        b = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return a[:, :2].sum(1) + b.sum(1)

    q, k = torch.randn(2, 4, 20, 8), torch.randn(2, 4, 20, 8)
    mask = torch.randn(20, 20)
    with ht.enable():
        want = model(q, k, k, mask)
        compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend="aot_eager")
        assert torch.equal(compiled(q, k, k, mask), want)
        q, k, mask = q[:, :, :13], k[:, :, :13], mask[:13, :13]
        assert torch.equal(compiled(q, k, k, mask), model(q, k, k, mask))


def test_the_operator_passes_pytorchs_checks():
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 7, 8)
    operator = torch.ops.heed.scaled_dot_product_attention
    torch.library.opcheck(operator, (q, k, k, None, True, None, True))
    torch.library.opcheck(operator, (q, q, q, torch.randn(5, 5), False, 0.5))
    torch.library.opcheck(operator, (q[0], q[0], q[0]))


def test_threads_follow_torch():
    x = torch.randn(2, 8, 300, 64)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            assert torch.equal(sdpa(x, x, x), sdpa(x, x, x))
            plan = next(reversed(ht._known._plans.values()))[0].plan
            assert f" threads={threads} " in plan.describe()
    finally:
        torch.set_num_threads(before)


def test_heed_attention_takes_tensors():
    q, k = torch.randn(2, 4, 5, 8).bfloat16(), torch.randn(2, 2, 7, 8).bfloat16()
    out, weights = heed.attention(q, k, k, causal="top_left", return_weights=True)
    assert out.dtype == torch.bfloat16 and weights.dtype == torch.float32
    assert torch.equal(out, sdpa(q, k, k, is_causal=True, enable_gqa=True))
    room = torch.zeros(2, 4, 5, 8, dtype=torch.bfloat16)
    assert heed.attention(q, k, k, causal="top_left", out=room, sinks=torch.zeros(4)) is room
    assert not torch.equal(room, out)
    with torch.enable_grad(), pytest.raises(ValueError, match="q requires grad"):
        heed.attention(q.float().requires_grad_(), k.float(), k.float())
    with pytest.raises(ValueError, match="q is a torch.strided tensor on meta"):
        heed.attention(q.to("meta"), k, k)
    mixed = heed.attention(np.ones((1, 1, 2, 8), np.float32), *(torch.ones(1, 1, 3, 8),) * 2)
    assert isinstance(mixed, np.ndarray)
