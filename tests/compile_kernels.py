"""Compile the kernels of training into numba's cache, which each worker of the tests does else."""

from __future__ import annotations

import multiprocessing

import numpy as np

from cppcl.methods import make_method


def train(dtype: str) -> None:
    """Train by features of one type."""
    features = np.random.default_rng(0).normal(size=(24, 8)).astype(dtype)
    labels = np.arange(24) % 6
    make_method("cprl", n_atoms=4, n_rounds=2).fit(features, features, labels, labels)


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(train, ["float32", "float64"], chunksize=1)
