#!/usr/bin/env python3
"""ONNX Runtime's MultiHeadAttention on the CPU, for alternate.py. Needs onnxruntime and onnx.

The operator has no heads of keys of its own: those of a group are repeated beforehand, untimed.
"""

import math

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import driver


def make(problem, threads):
    p = problem
    if p.dtype != "f32":
        raise driver.Refused("MultiHeadAttention is driven in f32 only")
    q, k, v = p.tensors()
    k, v = (np.repeat(x, p.group, axis=1) for x in (k, v))
    feeds = {name: np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(p.batch, x.shape[2], -1)
             for name, x in (("q", q), ("k", k), ("v", v))}
    node = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["o"], domain="com.microsoft",
                            num_heads=p.heads_q, scale=1 / math.sqrt(p.dim), unidirectional=int(p.causal))
    graph = helper.make_graph(
        [node], "attention",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in feeds.items()],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, feeds["q"].shape)])
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Its idle threads would spin into heed's turn: on two threads heed took 15.6 ms, not 8.4, of vit beside
    # them, and 13.9, not 7.9, of sd_cross; ONNX Runtime's own times hardly changed.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)[0]


if __name__ == "__main__":
    driver.serve("onnxruntime MultiHeadAttention", onnxruntime.__version__, make)
