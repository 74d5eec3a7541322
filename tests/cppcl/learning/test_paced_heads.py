"""Heads and CPRL in turns: what each turn lowers, noise, storage, and what is refused."""

import numpy as np
import pytest
from scipy import sparse

from cppcl.baselines import InfoNCEHeads
from cppcl.curriculum import ExplicitPairs
from cppcl.errors import InputError
from cppcl.learning.paced_heads import PacedHeads
from cppcl.retrieval.metrics import evaluate

HEADS = {"width": 32, "dimension": 12, "epochs": 15, "batch_size": 64}
SMALL = HEADS | {"alternation_epochs": 10, "cprl": {"n_rounds": 6}}
AGREEMENT = {"n_rounds": 6, "pacing": {"loss": "agreement"}}
UNPACED = {"n_rounds": 6, "pacing": {"regularizer": "none", "mu": 0.0}}


def classes(wrong=0.0, n=20, n_classes=6, seed=0):
    """Features of both modalities with the given and the true labels."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, 12))
    true = [rng.permutation(np.arange(n * n_classes) % n_classes) for _ in range(2)]
    features = [
        centres[of] + 0.9 * rng.normal(size=(len(of), 12)) + k for k, of in enumerate(true)
    ]
    given = [of.copy() for of in true]
    for of in given:
        rows = rng.permutation(len(of))[: round(wrong * len(of))]
        of[rows] = (of[rows] + rng.integers(1, n_classes, len(rows))) % n_classes
    return features, given, true


def score(method, features, true):
    rng = np.random.default_rng(1)
    new = [F + 0.5 * rng.normal(size=F.shape) for F in features]
    codes = method.encode_sketches(new[0]), method.encode_images(new[1])
    return evaluate(*codes, *true).scores["map"]


def test_paced_is_ahead_of_unpaced_where_labels_are_wrong():
    features, given, true = classes(wrong=0.4)
    paced, unpaced = (
        PacedHeads(**SMALL | {"cprl": cprl}).fit(*features, *given)
        for cprl in (AGREEMENT, UNPACED)
    )
    assert score(paced, features, true) > score(unpaced, features, true) + 0.05
    assert [paced.paces, unpaced.paces, unpaced.uses_curricula] == [True, False, False]
    v, right = paced.cprl_.sketch_pacing_, given[0] == true[0]
    assert v[right].mean() > v[~right].mean() + 0.3
    assert "sketch_pacing_rounds" not in unpaced.to_arrays()


def test_every_turn_lowers_what_it_minimises():
    features, given, _ = classes()
    method = PacedHeads(**SMALL | {"cprl": UNPACED}).fit(*features, *given)
    objective = method.history_["objective"].reshape(3, 6)
    assert (np.diff(objective, axis=1) < 1e-6 * objective[:, 1:]).all()
    losses = method.head_losses_
    assert losses.shape == (35,)
    assert losses[14] < losses[0]
    # The learning rate starts anew, so the first epochs of a turn are not compared.
    assert losses[24] < losses[15]
    assert method.history_["gamma"].shape == (18,)


def test_no_turns_keep_the_heads_of_infonce():
    features, given, _ = classes()
    heads = InfoNCEHeads(**HEADS).fit(*features, *given).to_arrays()
    found = PacedHeads(**SMALL, n_alternations=0).fit(*features, *given).to_arrays()
    for name in ("hidden", "bias", "output"):
        for modality in ("sketch", "image"):
            array = f"{modality}_{name}"
            np.testing.assert_array_equal(found[array], heads[array])


def test_reconstruction_brings_codes_nearer_to_the_dictionaries():
    features, given, _ = classes()
    errors = [
        PacedHeads(**SMALL | {"cprl": UNPACED}, reconstruction=weight)
        .fit(*features, *given)
        .history_["reconstruction_objective"][-1]
        for weight in (0.0, 3.0)
    ]
    assert errors[1] < 0.9 * errors[0]


def test_curricula_reach_the_pacing():
    features, given, _ = classes()
    once = SMALL | {"n_alternations": 0}
    v = PacedHeads(**once).fit(*features, *given).cprl_.sketch_pacing_rounds_[0]
    pairs = np.argsort(v)[::-1].reshape(-1, 2)[:10]  # the sooner one is called harder
    cprl = SMALL["cprl"] | {"pacing": {"mu": 1000.0, "curricula": "sketch"}}
    method = PacedHeads(**once | {"cprl": cprl})
    assert method.curriculum_modalities == ("sketch",)
    after = method.fit(*features, *given, ExplicitPairs(pairs, 120)).to_arrays()
    first = after["sketch_pacing_rounds"][0]
    assert (first[pairs[:, 0]] <= first[pairs[:, 1]] + 1e-5).all()


def test_stored_arrays_give_the_same_codes_and_the_same_cprl():
    features, given, _ = classes()
    method = PacedHeads(**SMALL, n_alternations=1).fit(*features, *given)
    again = PacedHeads(**SMALL, n_alternations=1).from_arrays(method.to_arrays())
    np.testing.assert_array_equal(
        again.encode_sketches(features[0]), method.encode_sketches(features[0])
    )
    np.testing.assert_array_equal(again.cprl_.image_dictionary_, method.cprl_.image_dictionary_)
    rounds = method.to_arrays()["image_pacing_rounds"]
    np.testing.assert_array_equal(rounds[-1], method.cprl_.image_pacing_.astype(np.float32))
    assert len(rounds) == len(method.history_["gamma"])


def test_options_of_groups_within_groups_are_set():
    method = PacedHeads().set_params(cprl__pacing__eta=1.5, cprl__n_atoms=9, width=8)
    assert (method.cprl.pacing.eta, method.cprl.n_atoms, method.width) == (1.5, 9, 8)
    assert method.get_params()["cprl__pacing__eta"] == 1.5
    assert not method.cprl.preparation.whiten
    with pytest.raises(InputError, match="eta=0 must be"):
        method.set_params(cprl__pacing__eta=0)
    assert PacedHeads().cprl.pacing.eta == 2.0


def test_what_it_cannot_do_is_named():
    features, given, true = classes()
    with pytest.raises(InputError, match=r"cprl\.preparation=Preparation\(.*\), but the unit"):
        PacedHeads(cprl={"preparation": {"whiten": True}})
    links = sparse.csr_array((true[0][:, None] == true[1]).astype(float))
    with pytest.raises(InputError, match=r"cprl\.pacing\.loss='agreement' judges labels"):
        PacedHeads(**HEADS, cprl=AGREEMENT).fit(*features, *given, links=links)
    gpu = {"device": "cuda", "coding": {"code_solver": "gradient"}}
    assert PacedHeads(cprl=gpu).uses_gpu
    with pytest.raises(InputError, match=r"device='cuda:99' cannot be used here"):
        PacedHeads(device="cuda:99").fit(*features, *given)
    with pytest.raises(InputError, match="diverged in epoch"):
        PacedHeads(**HEADS, learning_rate=1e9).fit(*features, *given)
