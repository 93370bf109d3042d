"""Finds the 20 main directions of points with scikit-learn's randomized PCA, so many times."""
import sys

import numpy as np
from sklearn.decomposition import PCA

repetitions = int(sys.argv[1])
random = np.random.default_rng(1)
hidden = random.standard_normal((4000, 20)) @ random.standard_normal((20, 300))
points = hidden + 0.01 * random.standard_normal((4000, 300))
right = True
for repetition in range(repetitions):
    found = PCA(n_components=20, svd_solver="randomized", random_state=repetition).fit(points)
    right &= found.explained_variance_ratio_.sum() > 0.999
print(f"pca-random {'ok' if right else 'WRONG'} checksum={found.singular_values_.sum():.3f}")
sys.exit(0 if right else 1)
