"""Clusters points of no shape with scikit-learn's KMeans, so many times; each cluster's centre is the mean of its points."""
import sys

import numpy as np
from sklearn.cluster import KMeans

repetitions = int(sys.argv[1])
points = np.random.default_rng(1).random((30_000, 12))
right = True
for repetition in range(repetitions):
    found = KMeans(n_clusters=24, n_init=1, max_iter=40, random_state=repetition).fit(points)
    means = np.stack([points[found.labels_ == cluster].mean(axis=0) for cluster in range(24)])
    right &= np.abs(means - found.cluster_centers_).max() < 0.05
print(f"kmeans-blobs {'ok' if right else 'WRONG'} checksum={found.inertia_:.3f}")
sys.exit(0 if right else 1)
