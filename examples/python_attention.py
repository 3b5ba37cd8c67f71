"""heed from NumPy: a causal call, its weights, and decoding from a paged cache.

    python examples/python_attention.py
"""

import numpy as np

import heed

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


# [batch, heads, tokens, dim]: 8 query heads read 2 kv heads.
q, k, v = normal(1, 8, 6, 64), normal(1, 2, 6, 64), normal(1, 2, 6, 64)
out, weights = heed.attention(q, k, v, causal=True, return_weights=True)
print("out", out.shape, "- what query 2 of head 0 looks at:", weights[0, 0, 2].round(3))

# Two sequences of 5 and 9 tokens in one pool of pages, then a token of each.
cache = heed.PagedCache(batch=2, heads_kv=2, dim=64, num_pages=8)
for sequence, tokens in enumerate([5, 9]):
    cache.append(normal(1, 2, tokens, 64), normal(1, 2, tokens, 64), sequences=[sequence])
cache.append(normal(2, 2, 1, 64), normal(2, 2, 1, 64))
out = cache.attend(normal(2, 8, 1, 64), causal="bottom_right")
print("lengths", cache.lengths, "out", out.shape, "free pages", cache.free_pages)

# One shape, many calls: what is the same is worked out once.
plan = heed.Plan("b1_hq8_hkv2_q6_k6_d64_causal_f32")
assert (plan.run(q, k, v) == heed.attention(q, k, v, causal=True)).all()
print(plan.describe())
