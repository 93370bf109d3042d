#!/usr/bin/python3
"""Multiplies a 400 x 400 matrix by itself, over and over, as numpy does it by default.

OpenBLAS starts a thread per CPU without being asked: an ordinary user's
program that is multithreaded, perhaps unknown to its author. The matrix is
orthogonal, so the product neither grows nor fades, and that is checked.
"""
import sys

import numpy as np

repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 500
matrix, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((400, 400)))
product = matrix
for _ in range(repetitions):
    product = product @ matrix
error = np.abs(product @ product.T - np.eye(400)).max()
print(f"numpy-matmul {'ok' if error < 1e-9 else 'WRONG'} checksum={np.abs(product).sum():.6f}")
sys.exit(0 if error < 1e-9 else 1)
