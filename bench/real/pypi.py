"""Runs a program that uses a library of PyPI, with so much work: pypi.py PROGRAM [SIZE] AMOUNT.

It checks its own result, and fails where that is wrong.
"""
import sys

import numpy as np


def two_classes():
    points = np.random.default_rng(1).standard_normal((20_000, 30))
    return points, (points[:, 0] * points[:, 1] + points[:, 2] > 0).astype(int)


def accuracy(predict):
    """Whether most of the points are classified right."""
    points, classes = two_classes()
    share = (predict(points[:2000]) == classes[:2000]).mean()
    return share > 0.85, f"accuracy={share:.4f}"


def hist(trees):
    """Fits scikit-learn's HistGradientBoosting to points of two classes."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=trees, early_stopping=False)
    return accuracy(model.fit(*two_classes()).predict)


def lightgbm(trees):
    """Fits LightGBM to points of two classes."""
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_estimators=trees, num_leaves=31, verbosity=-1)
    return accuracy(model.fit(*two_classes()).predict)


def xgboost(trees):
    """Fits XGBoost to points of two classes."""
    from xgboost import DMatrix, train

    points, classes = two_classes()
    settings = {"objective": "binary:logistic", "max_depth": 6, "tree_method": "hist"}
    model = train(settings, DMatrix(points, label=classes), num_boost_round=trees)
    return accuracy(lambda points: model.predict(DMatrix(points)) > 0.5)


def kmeans(repetitions):
    """Clusters points of no shape; each cluster's centre is the mean of its points."""
    from sklearn.cluster import KMeans

    points = np.random.default_rng(1).random((30_000, 12))
    right = True
    for seed in range(repetitions):
        found = KMeans(n_clusters=24, n_init=1, max_iter=40, random_state=seed).fit(points)
        means = np.stack([points[found.labels_ == cluster].mean(axis=0) for cluster in range(24)])
        right &= np.abs(means - found.cluster_centers_).max() < 0.05
    return right, f"checksum={found.inertia_:.3f}"


def pca(repetitions):
    """Finds the 20 main directions of points with scikit-learn's randomized PCA."""
    from sklearn.decomposition import PCA

    random = np.random.default_rng(1)
    hidden = random.standard_normal((4000, 20)) @ random.standard_normal((20, 300))
    points = hidden + 0.01 * random.standard_normal((4000, 300))
    right = True
    for seed in range(repetitions):
        found = PCA(n_components=20, svd_solver="randomized", random_state=seed).fit(points)
        right &= found.explained_variance_ratio_.sum() > 0.999
    return right, f"checksum={found.singular_values_.sum():.3f}"


def products(size, repetitions):
    """Multiplies orthogonal matrices of a size, so that the product neither grows nor fades."""
    matrix, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((size, size)))
    product = matrix
    for _ in range(repetitions):
        product = product @ matrix
    error = np.abs(product @ product.T - np.eye(size)).max()
    return error < 1e-8, f"checksum={np.abs(product).sum():.6f}"


def onnx(requests):
    """Answers equal requests with the network of make-network.py: their answers are equal, too."""
    from onnxruntime import InferenceSession

    session = InferenceSession("network.onnx", providers=["CPUExecutionProvider"])
    image = np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)
    first, = session.run(None, {"image": image})
    same = np.isfinite(first).all()
    for _ in range(requests):
        answer, = session.run(None, {"image": image})
        same &= np.allclose(answer, first, rtol=1e-4, atol=1e-4)
    return same, f"checksum={first.sum():.4f}"


PROGRAMS = (hist, lightgbm, xgboost, kmeans, pca, products, onnx)

if __name__ == "__main__":
    name, *amounts = sys.argv[1:]
    right, result = {program.__name__: program for program in PROGRAMS}[name](*map(int, amounts))
    print(f"{name} {'ok' if right else 'WRONG'} {result}")
    sys.exit(0 if right else 1)
