"""Multiplies matrices of the first size by themselves, as often as the second number says; 200 is small, 1000 is large.

The matrix is orthogonal, so the product neither grows nor fades, and that is checked.
"""
import sys

import numpy as np

size, repetitions = map(int, sys.argv[1:3])
matrix, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((size, size)))
product = matrix
for _ in range(repetitions):
    product = product @ matrix
error = np.abs(product @ product.T - np.eye(size)).max()
print(f"numpy-products {'ok' if error < 1e-8 else 'WRONG'} checksum={np.abs(product).sum():.6f}")
sys.exit(0 if error < 1e-8 else 1)
