"""What is wrong is a ValueError that names it; nothing is written."""

import numpy as np
import pytest

import heed


def arrays(q=(2, 4, 5, 8), k=(2, 2, 7, 8), v=(2, 2, 7, 8)):
    return tuple(np.ones(shape, np.float32) for shape in (q, k, v))


CASES = {
    "k has shape": lambda: heed.attention(*arrays(k=(2, 2, 7, 9))),
    "v has shape": lambda: heed.attention(*arrays(v=(2, 2, 6, 8))),
    "k has batch 1; expected 2": lambda: heed.attention(
        *arrays(k=(1, 2, 7, 8), v=(1, 2, 7, 8))
    ),
    "q has shape (8,)": lambda: heed.attention(*arrays(q=(8,))),
    "q has type float64": lambda: heed.attention(*(x.astype(float) for x in arrays())),
    "q has type >f4": lambda: heed.attention(*(x.astype(">f4") for x in arrays())),
    "v has type float16; expected float32": lambda: heed.attention(
        *arrays()[:2], np.ones((2, 2, 7, 8), np.float16)
    ),
    "q is a list": lambda: heed.attention([1.0], *arrays()[1:]),
    "problem.heads_q is 3": lambda: heed.attention(*arrays(q=(2, 3, 5, 8))),
    "without enable_gqa": lambda: heed.attention(*arrays(), enable_gqa=False),
    "causal is True with 5 queries and 7 keys": lambda: heed.attention(
        *arrays(), causal=True
    ),
    "causal is 'left'": lambda: heed.attention(*arrays(), causal="left"),
    "problem.scale is inf": lambda: heed.attention(*arrays(), scale=np.inf),
    "problem.softcap is -1": lambda: heed.attention(*arrays(), softcap=-1),
    "window is 3": lambda: heed.attention(*arrays(), window=3, causal="top_left"),
    "problem.window_left is -7": lambda: heed.attention(
        *arrays(), window=(-7, 0), causal="top_left"
    ),
    "align is None": lambda: heed.attention(*arrays(), window=(3, 0)),
    "align is 'top_left'; expected None": lambda: heed.attention(
        *arrays(), window=(3, 0), align="top_left", causal="top_left"
    ),
    "attn_mask has shape (5, 6)": lambda: heed.attention(
        *arrays(), attn_mask=np.ones((5, 6), bool)
    ),
    "attn_mask has type float64": lambda: heed.attention(
        *arrays(), attn_mask=np.ones((5, 7))
    ),
    "sinks has shape (3,); expected (4)": lambda: heed.attention(
        *arrays(), sinks=np.ones(3)
    ),
    "seqused_k has shape": lambda: heed.attention(*arrays(), seqused_k=[1]),
    "call.seqused_k of sequence 1 is 8": lambda: heed.attention(*arrays(), seqused_k=[1, 8]),
    "out has shape": lambda: heed.attention(*arrays(), out=np.ones(3, np.float32)),
    "out has type float16": lambda: heed.attention(
        *arrays(), out=np.ones((2, 4, 5, 8), np.float16)
    ),
    "call.q.stride_dim": lambda: heed.attention(
        arrays(q=(2, 4, 5, 16))[0][..., ::2], *arrays()[1:]
    ),
    "options.threads is -1": lambda: heed.attention(*arrays(), threads=-1),
    "block_table": lambda: heed.Plan("b1_hq1_hkv1_q1_k1_d1_f32").run(
        *arrays(*3 * [(1, 1, 1, 1)]), block_table=[[0]]
    ),
    "q has shape (2, 4, 5, 8); expected (1, 4, 5, 8)": lambda: heed.Plan(
        "b1_hq4_hkv2_q5_k7_d8_f32"
    ).run(*arrays()),
    "problem string": lambda: heed.Plan("nonsense"),
    "tuning is 'on'": lambda: heed.Plan("b1_hq1_hkv1_q1_k1_d1_f32", tuning="on"),
    "tile has 'rows'": lambda: heed.Plan("b1_hq1_hkv1_q1_k1_d1_f32", tile={"rows": 1}),
    "options.target is": lambda: heed.Plan("b1_hq1_hkv1_q1_k1_d1_f32", target="MMX"),
}


@pytest.mark.parametrize("line", CASES)
def test_the_error_names_what_is_wrong(line):
    with pytest.raises(ValueError) as error:
        CASES[line]()
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_out_may_not_be_read_only_nor_an_input():
    q, k, v = arrays()
    out = np.zeros_like(q)
    out.setflags(write=False)
    with pytest.raises(ValueError, match="out is read-only"):
        heed.attention(q, k, v, out=out)
    with pytest.raises(ValueError, match="overlap"):
        heed.attention(q, k, v, out=q)
    assert (q == 1).all()


def test_a_failed_call_spoils_no_later_one():
    q, k, v = arrays()
    plan = heed.Plan("b2_hq4_hkv2_q5_k7_d8_f32")
    with pytest.raises(ValueError):
        plan.run(q, k, v, out=q)
    assert (plan.run(q, k, v) == 1).all()
