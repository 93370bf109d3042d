"""Fits LightGBM to points of two classes, with so many trees."""
import sys

import lightgbm
import numpy as np

trees = int(sys.argv[1])
random = np.random.default_rng(1)
points = random.standard_normal((20_000, 30))
classes = (points[:, 0] * points[:, 1] + points[:, 2] > 0).astype(int)
model = lightgbm.LGBMClassifier(n_estimators=trees, num_leaves=31, verbosity=-1).fit(points, classes)
accuracy = (model.predict(points[:2000]) == classes[:2000]).mean()
print(f"lightgbm-fit accuracy={accuracy:.4f}")
sys.exit(0 if accuracy > 0.85 else 1)
