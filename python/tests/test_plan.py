"""heed.Plan, heed.PagedCache, heed.info and heed.tune."""

import json

import numpy as np
import pytest
import reference

import heed


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_a_plan_gives_what_attention_gives(rng):
    plan = heed.Plan("b2_hq4_hkv2_q5_k9_d16_dv8_causalbr_f32")
    assert plan.problem == "b2_hq4_hkv2_q5_k9_d16_dv8_causalbr_f32"
    q, k, v = normal(rng, 2, 4, 5, 16), normal(rng, 2, 2, 9, 16), normal(rng, 2, 2, 9, 8)
    want, want_lse = heed.attention(q, k, v, causal="bottom_right", return_lse=True)
    for _ in range(2):
        out, lse = plan.run(q, k, v, return_lse=True)
        assert (out == want).all() and (lse == want_lse).all()
    moved = np.ascontiguousarray(q.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    out = np.empty((2, 5, 4, 8), np.float32).transpose(0, 2, 1, 3)
    assert plan.run(moved, k, v, out=out) is out
    assert (out == want).all()
    assert plan.workspace_size > 0
    assert "problem=b2_hq4" in plan.describe()


def test_options_of_a_plan_change_no_bits(rng):
    text = "b1_hq2_hkv2_q130_k130_d32_causal_f32"
    x = normal(rng, 1, 2, 130, 32)
    want = heed.Plan(text).run(x, x, x)
    tile = {"row_block": 16, "key_tile": 48, "pack_k": 2, "decode_below": 1}
    pinned = heed.Plan(text, tile=tile, threads=2)
    assert "tier=pinned" in pinned.describe()
    assert (pinned.run(x, x, x) == want).all()
    assert (heed.Plan(text, tuning="off").run(x, x, x) == want).all()
    for target in heed.info()["targets"]:
        plan = heed.Plan(text, target=target)
        assert f"target={target} " in plan.describe()
        np.testing.assert_allclose(plan.run(x, x, x), want, atol=2e-6)


def test_everything_a_problem_may_ask_for(rng):
    plan = heed.Plan("b2_hq4_hkv2_q6_k9_d16_causaloff_cap3_alibi_maskf32_sinks_ragged_f32")
    q, k, v = normal(rng, 2, 4, 6, 16), normal(rng, 2, 2, 9, 16), normal(rng, 2, 2, 9, 16)
    options = {
        "attn_mask": normal(rng, 6, 9), "alibi_slopes": normal(rng, 4),
        "sinks": normal(rng, 4), "seqused_k": [9, 4],
    }  # fmt: skip
    want = heed.attention(q, k, v, causal=np.array([2, 1]), softcap=3, **options)
    got = plan.run(q, k, v, causal_offsets=[2, 1], **options)
    assert (got == want).all()
    with pytest.raises(ValueError, match="sinks is None"):
        plan.run(q, k, v, attn_mask=options["attn_mask"], alibi_slopes=options["sinks"])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_paged_cache_is_one_long_cache(rng, dtype):
    cache = heed.PagedCache(3, 2, 16, num_pages=12, page_size=4, dtype=dtype)
    lengths = [5, 9, 1]
    k, v = normal(rng, 3, 2, 12, 16), normal(rng, 3, 2, 12, 16)
    for b, n in enumerate(lengths):
        cache.append(k[b : b + 1, :, :n], v[b : b + 1, :, :n], sequences=[b])
    news = normal(rng, 3, 2, 2, 16)
    cache.append(news, news)
    assert cache.lengths.tolist() == [7, 11, 3]
    assert cache.free_pages == 12 - (2 + 3 + 1)
    q = normal(rng, 3, 4, 2, 16).astype(cache.k.dtype)
    out = cache.attend(q, causal="bottom_right")
    for b, n in enumerate(lengths):
        # Through a page of its own, so that the cache's rounding is in both.
        whole = heed.PagedCache(1, 2, 16, num_pages=1, page_size=n + 2, dtype=dtype)
        keys = np.concatenate([k[b, :, :n], news[b]], 1)[None]
        values = np.concatenate([v[b, :, :n], news[b]], 1)[None]
        whole.append(keys, values)
        one = heed.attention(q[b : b + 1], whole.k, whole.v, causal="bottom_right")
        assert (out[b] == one[0]).all()
        if dtype == "float32":
            seen = reference.visible(2, n + 2, n)
            want = reference.attention(q[b : b + 1], keys, values, seen=seen)[0]
            np.testing.assert_allclose(one, want, atol=2e-6)


def test_pages_are_given_back_and_run_out(rng):
    cache = heed.PagedCache(2, 1, 8, num_pages=3, page_size=2)
    x = normal(rng, 1, 1, 4, 8)
    cache.append(x, x, sequences=[0])
    with pytest.raises(ValueError, match="more pages than are free"):
        cache.append(x, x, sequences=[1])
    assert cache.lengths.tolist() == [4, 0] and cache.free_pages == 1
    cache.free(0)
    assert cache.free_pages == 3
    cache.append(x, x, sequences=[1])
    out = cache.attend(x[:, :, :1], sequences=[1])
    assert (out == heed.attention(x[:, :, :1], x, x)).all()
    with pytest.raises(ValueError, match="expected 0 to 1"):
        cache.append(x, x, sequences=[2])
    with pytest.raises(ValueError, match="each once"):
        cache.attend(x, sequences=[1, 1])


def test_info():
    info = heed.info()
    assert info["version"] == heed.__version__
    assert info["targets"] and info["threads"] >= 1
    assert info["library"]
    json.dumps(info)


def test_tune_writes_a_record(tmp_path):
    if heed.info()["machine"] is None:
        pytest.skip("the command heed is not built")
    shape = "b1_hq2_hkv2_q33_k33_d16_causal_f32"
    report = heed.tune([shape], budget="60s", effort="quick", output=tmp_path)
    assert [str(path) for path in tmp_path.glob("*/record.json")] == [report["path"]]
    assert shape in json.dumps(report)
    with pytest.raises(ValueError, match="effort"):
        heed.tune([shape], effort="huge", output=tmp_path)
