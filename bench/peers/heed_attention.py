#!/usr/bin/env python3
"""heed through its Python package, for alternate.py. HEED_LIBRARY names the libheed.so to load."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import heed  # noqa: E402

import driver  # noqa: E402


def make(problem, threads):
    q, k, v = problem.tensors()
    if problem.dtype == "bf16":
        try:
            import ml_dtypes
        except ImportError as error:
            raise driver.Refused("NumPy has bf16 only with ml_dtypes") from error
        q, k, v = (x.astype(ml_dtypes.bfloat16) for x in (q, k, v))
    elif problem.dtype == "f16":
        q, k, v = (x.astype(np.float16) for x in (q, k, v))
    causal = "top_left" if problem.causal else None
    out = np.empty_like(q)
    return lambda: heed.attention(q, k, v, causal=causal, enable_gqa=problem.group > 1, threads=threads,
                                  out=out)


if __name__ == "__main__":
    driver.serve("heed", heed.__version__, make)
