"""Writes network.onnx, a small convolutional network with random weights, into the folder that is named."""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(1)
nodes, weights, inside, channels = [], [], "image", 3
for layer, width in enumerate([32, 64, 64, 64]):
    values = random.standard_normal((width, channels, 3, 3)) / np.sqrt(9 * channels)
    weights.append(numpy_helper.from_array(values.astype(np.float32), f"weights{layer}"))
    nodes.append(helper.make_node("Conv", [inside, f"weights{layer}"], [f"sums{layer}"], pads=[1, 1, 1, 1]))
    nodes.append(helper.make_node("Relu", [f"sums{layer}"], [f"layer{layer}"]))
    inside, channels = f"layer{layer}", width
nodes.append(helper.make_node("GlobalAveragePool", [inside], ["answer"]))
graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 64, 64])],
                          [helper.make_tensor_value_info("answer", TensorProto.FLOAT, [1, channels, 1, 1])], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, pathlib.Path(sys.argv[1]) / "network.onnx")
