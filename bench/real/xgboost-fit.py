"""Fits XGBoost to points of two classes, with so many trees."""
import sys

import numpy as np
import xgboost

trees = int(sys.argv[1])
random = np.random.default_rng(1)
points = random.standard_normal((20_000, 30))
classes = (points[:, 0] * points[:, 1] + points[:, 2] > 0).astype(int)
model = xgboost.train({"objective": "binary:logistic", "max_depth": 6, "tree_method": "hist"},
                      xgboost.DMatrix(points, label=classes), num_boost_round=trees)
accuracy = ((model.predict(xgboost.DMatrix(points[:2000])) > 0.5) == classes[:2000]).mean()
print(f"xgboost-fit accuracy={accuracy:.4f}")
sys.exit(0 if accuracy > 0.85 else 1)
