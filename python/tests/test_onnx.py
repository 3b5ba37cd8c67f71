"""heed.Attention in ONNX Runtime: the conformance cases, and rewritten models."""

import json

import numpy as np
import pytest
import reference

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import heed.onnx  # noqa: E402

try:
    heed.onnx.library()
except RuntimeError as error:
    pytest.skip(str(error), allow_module_level=True)

TYPES = {"float32": onnx.TensorProto.FLOAT, "float16": onnx.TensorProto.FLOAT16}


def value(name, array):
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return onnx.helper.make_tensor_value_info(name, kind, array.shape)


def make_model(nodes, inputs, outputs, opset=21):
    """A model of nodes; `inputs` name -> array, `outputs` name -> element type."""
    graph = onnx.helper.make_graph(
        nodes, "test", [value(name, array) for name, array in inputs.items()],
        [onnx.helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)


def run(model, inputs, heed_too=True, threads=2):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if heed_too:
        heed.onnx.session_options(options)
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)


def test_the_conformance_cases(conformance):
    folders = sorted((conformance / "onnx").glob("*/case.json"))
    assert folders
    for path in folders:
        case = json.loads(path.read_text())
        inputs, wanted = (
            {name: np.load(path.parent / x["file"]) for name, x in case[side].items()}
            for side in ("inputs", "outputs")
        )
        order = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
        results = ["Y", "present_key", "present_value", "qk_matmul_output"]
        node = onnx.helper.make_node(
            "Attention",
            [name if name in inputs else "" for name in order],
            [name if name in wanted else "" for name in results],
            **{name: x for name, x in case["attributes"].items() if x is not None},
        )
        kinds = {
            name: onnx.helper.np_dtype_to_tensor_dtype(wanted[name].dtype)
            for name in results if name in wanted
        }  # fmt: skip
        model = make_model([node], inputs, kinds, case["opset"])
        assert heed.onnx.rewrite(model) == (1, [])
        # No node of the standard's is left; an older runtime may not know its version.
        model.opset_import[0].version = 21
        for name, got in zip(kinds, run(model, inputs)):
            want = wanted[name]
            where = f"{path.parent.name}: {name}"
            assert got.dtype == want.dtype and got.shape == want.shape, where
            if name.startswith("present"):
                assert got.tobytes() == want.tobytes(), where
                continue
            unit = 2e-3 if want.dtype == np.float16 else 2e-6
            np.testing.assert_allclose(
                got.astype(np.float64), want.astype(np.float64), rtol=unit, atol=unit, err_msg=where
            )
    print(len(folders), "cases")


def random(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def both(model, inputs):
    """(what ONNX Runtime gives, what it gives of the rewritten model)."""
    want = run(model, inputs, heed_too=False)
    assert heed.onnx.rewrite(model) == (1, [])
    assert [node.domain for node in model.graph.node].count("heed") == 1
    return want, run(model, inputs)


GROUP_QUERY = [
    {}, {"local_window_size": 7}, {"softcap": 3.0}, {"scale": 0.5}, {"do_rotary": 1},
    {"do_rotary": 1, "rotary_interleaved": 1},
]  # fmt: skip


@pytest.mark.parametrize("attributes", GROUP_QUERY, ids=str)
@pytest.mark.parametrize("case", ["prompt", "decode", "buffer"])
def test_group_query_attention(rng, attributes, case):
    batch, heads, heads_kv, dim = 2, 6, 2, 16
    tokens = 12 if case == "prompt" else 1
    past = {"prompt": 0, "decode": 19, "buffer": 32}[case]
    used = {"prompt": [12, 9], "decode": [20, 20], "buffer": [20, 11]}[case]
    total = max(used)
    inputs = {
        "query": random(rng, batch, tokens, heads * dim),
        "key": random(rng, batch, tokens, heads_kv * dim),
        "value": random(rng, batch, tokens, heads_kv * dim),
        "past_key": random(rng, batch, heads_kv, past, dim),
        "past_value": random(rng, batch, heads_kv, past, dim),
        "seqlens_k": np.array(used, np.int32) - 1,
        "total": np.array(total, np.int32),
    }
    names = list(inputs)
    if "do_rotary" in attributes:
        angles = np.arange(40)[:, None] / 100 ** (np.arange(dim // 2) / (dim // 2))
        inputs["cos"] = np.cos(angles).astype(np.float32)
        inputs["sin"] = np.sin(angles).astype(np.float32)
        names += ["cos", "sin"]
    node = onnx.helper.make_node(
        "GroupQueryAttention", names, ["y", "present_key", "present_value"],
        domain="com.microsoft", num_heads=heads, kv_num_heads=heads_kv, **attributes,
    )  # fmt: skip
    kinds = {name: TYPES["float32"] for name in ("y", "present_key", "present_value")}
    want, got = both(make_model([node], inputs, kinds), inputs)
    for b, n in enumerate(used):
        rows = n if case == "prompt" else tokens
        np.testing.assert_allclose(got[0][b, :rows], want[0][b, :rows], atol=3e-6)
        for x, y in zip(got[1:], want[1:]):
            assert x.shape == y.shape
            np.testing.assert_allclose(x[b, :, :n], y[b, :, :n], atol=1e-6)


@pytest.mark.parametrize("what", ["plain", "causal", "padding", "bias", "added", "past"])
def test_multi_head_attention(rng, what):
    batch, heads, dim, tokens, keys = 2, 4, 8, 7, 7 if what == "causal" else 11
    inputs = {
        "query": random(rng, batch, tokens, heads * dim),
        "key": random(rng, batch, keys, heads * dim),
        "value": random(rng, batch, keys, heads * dim),
    }
    names, attributes, constants, outputs = list(inputs), {}, [], ["y"]
    if what == "causal":
        attributes["unidirectional"] = 1
    elif what == "padding":
        inputs["padding"] = np.ones((batch, keys), np.int32)
        inputs["padding"][1, 6:] = 0
        names += ["", "padding"]
    elif what == "bias":
        constants = [onnx.numpy_helper.from_array(random(rng, 3 * heads * dim), "bias")]
        names += ["bias"]
    elif what == "added":
        inputs["added"] = random(rng, 1, heads, tokens, keys)
        names += ["", "", "added"]
    elif what == "past":
        inputs["past_key"] = random(rng, batch, heads, 5, dim)
        inputs["past_value"] = random(rng, batch, heads, 5, dim)
        names += ["", "", "", "past_key", "past_value"]
        outputs += ["present_key", "present_value"]
    node = onnx.helper.make_node(
        "MultiHeadAttention", names, outputs, domain="com.microsoft", num_heads=heads,
        **attributes,
    )  # fmt: skip
    model = make_model([node], inputs, {name: TYPES["float32"] for name in outputs})
    model.graph.initializer.extend(constants)
    want, got = both(model, inputs)
    for x, y in zip(got, want):
        np.testing.assert_allclose(x, y, atol=3e-6)


def test_what_cannot_be_rewritten_is_left_and_said(rng):
    inputs = {"query": random(rng, 1, 3, 3 * 16)}
    node = onnx.helper.make_node(
        "MultiHeadAttention", ["query"], ["y"], name="packed", domain="com.microsoft", num_heads=2
    )
    model = make_model([node], inputs, {"y": TYPES["float32"]})
    assert heed.onnx.rewrite(model) == (0, [("packed", "packed, or with a shared buffer")])
    assert model.graph.node[0].op_type == "MultiHeadAttention"


def test_errors_are_heeds_line(rng):
    inputs = {"q": random(rng, 1, 3, 5, 8), "k": random(rng, 1, 2, 5, 8)}
    node = onnx.helper.make_node("Attention", ["q", "k", "k"], ["y"], domain="heed")
    model = make_model([node], inputs, {"y": TYPES["float32"]})
    model.opset_import.append(onnx.helper.make_opsetid("heed", 1))
    with pytest.raises(Exception, match="problem.heads_q is 3; expected a multiple of"):
        run(model, inputs)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_sessions_threads_give_the_same_bits(rng, threads):
    x = random(rng, 1, 4, 300, 64)
    node = onnx.helper.make_node("Attention", ["x", "x", "x"], ["y"], is_causal=1)
    model = make_model([node], {"x": x}, {"y": TYPES["float32"]}, 23)
    heed.onnx.rewrite(model)
    model.opset_import[0].version = 21
    (got,) = run(model, {"x": x}, threads=threads)
    assert (got == heed.attention(x, x, x, causal=True)).all()
    seen = reference.visible(300, 300, 0)
    np.testing.assert_allclose(got, reference.attention(x, x, x, seen=seen)[0], atol=2e-6)


def test_the_command_line(rng, tmp_path, capsys):
    x = random(rng, 1, 2, 4, 8)
    node = onnx.helper.make_node("Attention", ["x", "x", "x"], ["y"])
    onnx.save(make_model([node], {"x": x}, {"y": TYPES["float32"]}, 23), tmp_path / "a.onnx")
    assert heed.onnx.main([str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")]) == 0
    assert "1 nodes are heed.Attention now" in capsys.readouterr().out
    assert onnx.load(tmp_path / "b.onnx").graph.node[0].domain == "heed"
