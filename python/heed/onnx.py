"""heed.Attention in ONNX Runtime: the operator's library, and models that use it.

    python -m heed.onnx model.onnx with_heed.onnx       # rewrites the nodes

    import onnxruntime, heed.onnx
    session = onnxruntime.InferenceSession("with_heed.onnx", heed.onnx.session_options())

``heed.Attention`` has the inputs, outputs and attributes of ONNX's Attention (opset
23 and 24), and from GroupQueryAttention a window, sinks, and a past with room.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import __path__ as _package_path
from . import _core, _library

__all__ = ["DOMAIN", "library", "rewrite", "session_options"]

DOMAIN = "heed"
_MICROSOFT = "com.microsoft"


def library() -> str:
    """The file libheed_ort.so: named in HEED_ORT_LIBRARY, in the wheel, or beside
    libheed. RuntimeError if there is none."""
    named = os.environ.get("HEED_ORT_LIBRARY")
    if named:
        return named
    inside = _library.packaged(_package_path, "lib/libheed_ort.so")
    if inside:
        return inside
    beside = Path(_core.library.path).resolve().parent / "libheed_ort.so"
    if beside.exists():
        return str(beside)
    raise RuntimeError(
        "heed: libheed_ort.so is not there; it is built where CMake finds "
        "onnxruntime_cxx_api.h, or name the file in HEED_ORT_LIBRARY"
    )


def session_options(options=None):
    """`options`, an onnxruntime.SessionOptions (None: a new one), that knows heed's
    operator."""
    if options is None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(library())
    return options


class _Graph:
    """One graph that is rewritten: names that are free, nodes that come before."""

    def __init__(self, graph):
        import onnx

        self.onnx = onnx
        self.graph = graph
        self.constants = {x.name: x for x in graph.initializer}
        self.ranks = {}
        for value in [*graph.input, *graph.value_info, *graph.output]:
            if value.type.tensor_type.HasField("shape"):
                self.ranks[value.name] = len(value.type.tensor_type.shape.dim)
        self.ranks.update({x.name: len(x.dims) for x in graph.initializer})
        self.before = []
        self.number = 0

    def name(self, what):
        self.number += 1
        return f"heed_{what}_{self.number}"

    def constant(self, values, dtype):
        import numpy as np

        name = self.name("constant")
        array = np.asarray(values, dtype)
        self.graph.initializer.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, op, inputs, domain="", **attributes):
        """A node before the one that is rewritten; the name of its output."""
        output = self.name(op.lower())
        self.before.append(
            self.onnx.helper.make_node(op, inputs, [output], domain=domain, **attributes)
        )
        return output


def _attributes(node, onnx):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def _input(node, index):
    return node.input[index] if index < len(node.input) else ""


def _attention(node, given, graph):
    """ONNX's Attention: the same but for its precision, which is always float32."""
    given.pop("softmax_precision", None)
    return list(node.input), given


def _multi_head(node, given, graph):
    """com.microsoft's MultiHeadAttention, or why it is left as it is."""
    query, key, value, bias, padding, added, past_key, past_value = (
        _input(node, i) for i in range(8)
    )
    if not key or not value or any(_input(node, i) for i in range(8, len(node.input))):
        return "packed, or with a shared buffer"
    if len(node.output) > 3 and node.output[3]:
        return "with its scores as an output"
    if padding and (added or graph.ranks.get(padding) != 2):
        return "a key_padding_mask that is not (batch, keys), or beside an attention_bias"
    if bias:
        if bias not in graph.constants or graph.ranks.get(key) != 3:
            return "a bias that is no constant"
        array = graph.onnx.numpy_helper.to_array(graph.constants[bias])
        third = len(array) // 3
        if len(array) % 3:
            return "a bias whose parts differ"
        query, key, value = (
            graph.add("Add", [x, graph.constant(array[i * third : (i + 1) * third], array.dtype)])
            for i, x in enumerate((query, key, value))
        )
    mask = added
    if padding:
        seen = graph.add("Cast", [padding], to=graph.onnx.TensorProto.BOOL)
        mask = graph.add("Unsqueeze", [seen, graph.constant([1, 2], "int64")])
    kept = {"q_num_heads": given["num_heads"], "kv_num_heads": given["num_heads"]}
    if given.get("scale"):
        kept["scale"] = given["scale"]
    if given.get("unidirectional"):
        kept["is_causal"] = 1
    return [query, key, value, mask, past_key, past_value], kept


def _group_query(node, given, graph):
    """com.microsoft's GroupQueryAttention, or why it is left as it is."""
    names = [_input(node, i) for i in range(12)]
    query, key, value, past_key, past_value, seqlens, _, cos, sin, positions, added, sink = names
    if not key or not value:
        return "packed q, k and v"
    if given.get("smooth_softmax", 0) == 1 and not sink:
        return "smooth_softmax"
    if any(_input(node, i) for i in range(12, len(node.input))) or given.get("qk_output", 0) > 0:
        return "quantised, or with its scores as an output"
    if given.get("k_quant_type", b"NONE") != b"NONE":
        return "a quantised cache"
    last = graph.add("Reshape", [seqlens, graph.constant([-1], "int64")])
    last = graph.add("Cast", [last], to=graph.onnx.TensorProto.INT64)
    used = graph.add("Add", [last, graph.constant([1], "int64")])
    if given.get("do_rotary", 0):
        if not positions:
            positions = _positions(query, used, graph)
        query, key = (
            graph.add(
                "RotaryEmbedding", [x, positions, cos, sin], domain=_MICROSOFT,
                interleaved=given.get("rotary_interleaved", 0), num_heads=heads,
            )
            for x, heads in ((query, given["num_heads"]), (key, given["kv_num_heads"]))
        )  # fmt: skip
    kept = {
        "q_num_heads": given["num_heads"], "kv_num_heads": given["kv_num_heads"],
        "is_causal": 1,
    }  # fmt: skip
    for name in ("scale", "softcap"):
        if given.get(name):
            kept[name] = given[name]
    if given.get("local_window_size", -1) > 0:
        kept["local_window_size"] = given["local_window_size"]
    return [query, key, value, added, past_key, past_value, used, sink], kept


def _positions(query, used, graph):
    """[batch, tokens] of GroupQueryAttention: a sequence's new tokens end at its last
    key, a prompt's begin at 0."""
    one = graph.constant(1, "int64")
    tokens = graph.add("Gather", [graph.add("Shape", [query]), one])
    first = graph.add("Max", [graph.add("Sub", [used, tokens]), graph.constant([0], "int64")])
    first = graph.add("Unsqueeze", [first, graph.constant([1], "int64")])
    steps = graph.add("Range", [graph.constant(0, "int64"), tokens, one])
    return graph.add("Add", [first, steps])


_REWRITES = {
    ("", "Attention"): _attention,
    ("ai.onnx", "Attention"): _attention,
    (_MICROSOFT, "MultiHeadAttention"): _multi_head,
    (_MICROSOFT, "GroupQueryAttention"): _group_query,
}


def rewrite(model):
    """Makes Attention, MultiHeadAttention and GroupQueryAttention nodes heed.Attention.

    Args:
      model: an onnx.ModelProto, which is changed.

    Returns:
      (how many nodes, [(name of a node that was left, why)]).
    """
    done, left = 0, []
    graph = _Graph(model.graph)
    nodes = []
    for node in model.graph.node:
        made = _REWRITES.get((node.domain, node.op_type))
        if made is None:
            nodes.append(node)
            continue
        graph.before = []
        result = made(node, _attributes(node, graph.onnx), graph)
        if isinstance(result, str):
            left.append((node.name or node.output[0], result))
            nodes.append(node)
            continue
        inputs, attributes = result
        while inputs and not inputs[-1]:
            inputs.pop()
        nodes += graph.before
        nodes.append(
            graph.onnx.helper.make_node(
                "Attention", inputs, list(node.output), name=node.name, domain=DOMAIN, **attributes
            )
        )
        done += 1
    # A node that was left may have had constants made for it: they harm nobody.
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    if done and all(opset.domain != DOMAIN for opset in model.opset_import):
        model.opset_import.append(graph.onnx.helper.make_opsetid(DOMAIN, 1))
    return done, left


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m heed.onnx",
        description="Rewrites a model's attention nodes to heed.Attention.",
    )
    parser.add_argument("model", help="the model, .onnx")
    parser.add_argument("output", help="where to write it")
    options = parser.parse_args(arguments)
    import onnx

    model = onnx.load(options.model)
    done, left = rewrite(model)
    onnx.save(model, options.output)
    print(f"{done} nodes are heed.Attention now; {options.output}")
    for name, why in left:
        print(f"left as it was: {name} ({why})")
    return 0 if done or not left else 1


if __name__ == "__main__":
    sys.exit(main())
