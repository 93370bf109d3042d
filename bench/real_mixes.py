"""real_mixes.py: the mixes of the bench of real programs.

Each has two to eight programs. Half of the mixes are held out: rules and constants of a policy are chosen by the others
alone. Every kind of program is in both halves.
"""

from kernel_mixes import Mix, Program, storm
from real_programs import RealProgram


def all_mixes(folder):
    """`folder` has what bench/real/Makefile makes."""
    def P(kind, **keys):
        return RealProgram(kind, folder=folder, **keys)

    tuning = {
        "lightgbm x3": [P("lightgbm", copies=3)],
        "onnx x3": [P("onnx", copies=3, work=1.5)],
        "small products x4": [P("small-products", copies=4, work=0.7)],
        "kmeans x3": [P("kmeans", copies=3)],
        "gromacs x2": [P("gromacs", copies=2, work=2)],
        "builds x3": [P("build", copies=3, work=1.5)],
        "mpi x2": [P("mpi", copies=2, work=1.5)],
        "jvm x3": [P("jvm", copies=3)],
        "encode x2, compress": [P("encode", copies=2), P("compress")],
        "torch x2, hist": [P("torch", copies=2), P("hist")],
        "xgboost, pca, go, large products": [P("xgboost"), P("pca"), P("go"), P("large-products")],
        "eight kernels": [Program(kind) for kind in ["cg", "stencil", "bucket-sort", "triad", "phases", "compute",
                                                    "nested-locks"]] + [storm(20)],
        "lightgbm, late onnx and build": [P("lightgbm"), P("onnx", start=0.6), P("build", start=1.2)],
    }
    held_out = {
        "xgboost x3": [P("xgboost", copies=3)],
        "hist x2, onnx": [P("hist", copies=2), P("onnx")],
        "large products x4": [P("large-products", copies=4)],
        "pca x3": [P("pca", copies=3)],
        "go x4": [P("go", copies=4)],
        "torch x3": [P("torch", copies=3)],
        "jvm x2, compress x2": [P("jvm", copies=2), P("compress", copies=2)],
        "mpi, gromacs": [P("mpi", work=2), P("gromacs", work=2)],
        "builds x2, lightgbm": [P("build", copies=2), P("lightgbm")],
        "encode, kmeans, small products": [P("encode"), P("kmeans"), P("small-products")],
        "cg x2, stencil x2, sort": [Program("cg", copies=2, work=0.6), Program("stencil", copies=2, work=0.6),
                                   Program("bucket-sort")],
        "eight programs": [P(kind, work=0.5) for kind in ["lightgbm", "onnx", "small-products", "kmeans", "gromacs", "jvm",
                                                         "build", "mpi"]],
        "gromacs, late xgboost and encode": [P("gromacs", work=2), P("xgboost", start=0.6), P("encode", start=1.2)],
    }
    return [Mix(name, programs, held) for held, mixes in [(False, tuning), (True, held_out)]
            for name, programs in mixes.items()]
