"""The same code on every device there is: 'cpu:0' is torch on the processor, 'cpu' is numpy."""

import numpy as np
import pytest
import torch

from cppcl import CPRL
from cppcl.errors import InputError
from cppcl.optim.devices import check_device, placed, to_numpy
from cppcl.optim.dictionary import project_atoms, update_dictionary
from cppcl.optim.terms import CodeBlock, Reconstruction

DEVICES = ["cpu:0", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture
def views():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 60), rng.integers(0, 6, 80)
    centres = [rng.standard_normal((6, m)) for m in (20, 25)]
    return [
        (C[of_side] + 0.5 * rng.standard_normal((len(of_side), C.shape[1]))).astype(np.float32)
        for C, of_side in zip(centres, labels, strict=True)
    ], labels


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [10, 80])
def test_dictionary_step_agrees_with_numpy(device, n):
    rng = np.random.default_rng(1)
    F, C, v = rng.standard_normal((n, 9)), rng.standard_normal((n, 30)), rng.random(n)
    start = project_atoms(rng.standard_normal((30, 9)))
    expected, found = (
        update_dictionary(F, C, v, start=start, device=where, max_iter=20_000, tol=1e-12)
        for where in ("cpu", device)
    )
    assert isinstance(found.dictionary, np.ndarray)
    np.testing.assert_allclose(C @ found.dictionary, C @ expected.dictionary, atol=1e-6)
    there, here = (
        Reconstruction([CodeBlock(slice(0, n), F, start)], where).losses(C)
        for where in (device, "cpu")
    )
    np.testing.assert_allclose(there, here, rtol=1e-10)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("within", ["none", "knn"])
def test_training_on_a_device_agrees_with_the_processor(device, within, views):
    features, labels = views
    models = [
        CPRL(
            n_atoms=20,
            alpha=0.05,
            beta=1.0,
            n_rounds=6,
            initialization={"atom_start": "samples"},
            preparation={"whiten": False},
            device=where,
            coding={"code_solver": solver},
            graph={"within": within},
        ).fit(*features, *labels)
        for solver, where in (("gradient", "cpu"), ("gradient", device), ("coordinate", "cpu"))
    ]
    plain, there, coordinate = (model.history_["objective"] for model in models)
    # Sweeps of the processor get a little further than gradient steps.
    np.testing.assert_allclose(there, plain, rtol=0.02)
    np.testing.assert_allclose(coordinate[-1], plain[-1], rtol=0.05)
    ours, theirs = (model.encode_images(features[1]) for model in models[:2])
    cosine = (ours * theirs).sum() / np.linalg.norm(ours) / np.linalg.norm(theirs)
    assert cosine > 0.99


def test_arrays_go_and_come_back():
    X = np.arange(6.0).reshape(2, 3)
    assert placed(X, "cpu") is X
    np.testing.assert_array_equal(to_numpy(placed(X, "cpu:0") @ placed(X.T, "cpu:0")), X @ X.T)


def test_a_device_that_is_not_there_is_refused_by_training_alone(views):
    features, labels = views
    with pytest.raises(
        InputError, match=r"device='cuda:99' cannot be used here .*use device='cpu'"
    ):
        check_device("cuda:99")
    model = CPRL(n_atoms=5, n_rounds=1, device="cuda:99", coding={"code_solver": "gradient"})
    with pytest.raises(InputError, match="device='cuda:99'"):
        model.fit(*features, *labels)
    trained = CPRL(n_atoms=5, n_rounds=1).fit(*features, *labels)
    # What was trained on a GPU codes new samples anywhere.
    assert model.from_arrays(trained.to_arrays()).encode_images(features[1]).shape == (80, 5)


def test_a_device_without_numbers_is_refused():
    with pytest.raises(InputError, match="device='meta' cannot be used here"):
        check_device("meta")
