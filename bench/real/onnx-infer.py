"""Answers so many requests, one after another, with a small convolutional network in onnxruntime.

make-network.py writes the network. Equal requests must have equal answers.
"""
import sys

import numpy as np
import onnxruntime

requests = int(sys.argv[1])
session = onnxruntime.InferenceSession("network.onnx", providers=["CPUExecutionProvider"])
image = np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)
first, = session.run(None, {"image": image})
same = True
for _ in range(requests):
    answer, = session.run(None, {"image": image})
    same &= np.allclose(answer, first, rtol=1e-4, atol=1e-4)
print(f"onnx-infer {'ok' if same else 'WRONG'} checksum={first.sum():.4f}")
sys.exit(0 if same and np.isfinite(first).all() else 1)
