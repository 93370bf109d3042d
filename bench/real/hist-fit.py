"""Fits scikit-learn's HistGradientBoosting to points of two classes, with so many trees."""
import sys

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

trees = int(sys.argv[1])
random = np.random.default_rng(1)
points = random.standard_normal((20_000, 30))
classes = (points[:, 0] * points[:, 1] + points[:, 2] > 0).astype(int)
model = HistGradientBoostingClassifier(max_iter=trees, early_stopping=False).fit(points, classes)
accuracy = model.score(points[:2000], classes[:2000])
print(f"hist-fit accuracy={accuracy:.4f}")
sys.exit(0 if accuracy > 0.85 else 1)
