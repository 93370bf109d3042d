#!/usr/bin/python3
"""Finds principal components with scikit-learn, which hands the work to BLAS.

The data varies along three known directions only, so three components have to
explain all of it, which is checked every time.
"""
import sys

import numpy as np
from sklearn.decomposition import PCA

repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 6
random = np.random.default_rng(1)
data = random.standard_normal((4000, 3)) @ random.standard_normal((3, 400))
right = True
for _ in range(repetitions):
    found = PCA(n_components=3, svd_solver="full").fit(data)
    right &= abs(found.explained_variance_ratio_.sum() - 1) < 1e-9
print(f"sklearn-pca {'ok' if right else 'WRONG'} checksum={found.singular_values_.sum():.6f}")
sys.exit(0 if right else 1)
