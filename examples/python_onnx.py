"""heed in ONNX Runtime: a model with one Attention node, rewritten and run.

    python examples/python_onnx.py
"""

import numpy as np
import onnx
import onnxruntime

import heed.onnx

shape = (1, 8, 100, 64)
node = onnx.helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1)
tensor = onnx.helper.make_tensor_value_info
graph = onnx.helper.make_graph(
    [node],
    "one_layer",
    [tensor(name, onnx.TensorProto.FLOAT, shape) for name in "qkv"],
    [tensor("y", onnx.TensorProto.FLOAT, shape)],
)
model = onnx.helper.make_model(
    graph, opset_imports=[onnx.helper.make_opsetid("", 23)], ir_version=10
)
print("rewritten nodes, and those left:", heed.onnx.rewrite(model))

session = onnxruntime.InferenceSession(model.SerializeToString(), heed.onnx.session_options())
inputs = {name: np.random.randn(*shape).astype(np.float32) for name in "qkv"}
(y,) = session.run(None, inputs)
print("the same as heed's:", (y == heed.attention(*inputs.values(), causal=True)).all())
