#!/usr/bin/python3
"""Clusters points with scikit-learn's KMeans, with its inner loop in OpenMP.

The points lie in eight clouds far apart, so the clusters are known, and
checked every time.
"""
import sys

import numpy as np
from sklearn.cluster import KMeans

repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 12
centres = 100.0 * np.eye(8, 16)
random = np.random.default_rng(1)
points = np.repeat(centres, 5000, axis=0) + random.standard_normal((40000, 16))
clouds = np.repeat(np.arange(8), 5000)
right = True
for _ in range(repetitions):
    found = KMeans(n_clusters=8, init=centres + 1, n_init=1, max_iter=20, tol=0).fit(points)
    right &= np.array_equal(found.labels_, clouds)
print(f"sklearn-kmeans {'ok' if right else 'WRONG'} checksum={found.inertia_:.3f}")
sys.exit(0 if right else 1)
