"""Noise through the chain: protocols that differ in it, a bound, and what the report tells."""

import numpy as np
import pytest

from cppcl.report.noise import AUC, SHARE
from tasks.lineage import Lineage
from tasks.reporting.report import told_apart
from tasks.samples import open_split, training_samples
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module")

CPRL = {"method": "cprl", "n_atoms": 4, "n_rounds": 3, "initialization": {"n_initial_rounds": 1}}
METHODS = {
    "paced": {**CPRL, "pacing": {"loss": "agreement"}},
    "unpaced": {**CPRL, "pacing": {"regularizer": "none", "mu": 0.0}},
    "bound": {**CPRL, "only_right": True, "answers": False},
}


def test_a_run_at_two_levels_of_noise(tmp_path, draw_pictures, write_experiment, run_plain):
    split = {"rule": "instance", "n_train": 9, "seeds": [0]}
    noisy = {**split, "noise": {"wrong_pairs": 0.4}}
    root = draw_pictures(tmp_path / "shapes")
    file = write_experiment(
        root,
        protocols={
            name: {"split": one, "methods": METHODS}
            for name, one in (("clean", split), ("noisy", noisy))
        },
    )
    place = Workspace(tmp_path / "workspace")
    store = place.store
    chain = run_plain(file, place)
    lineages = {
        (protocol, method): Lineage.of_evaluation(store, found[0])
        for protocol, methods in chain.record.scores.items()
        for method, found in methods.items()
    }
    clean, wrong, bound = (
        lineages[k] for k in (("clean", "paced"), ("noisy", "paced"), ("noisy", "bound"))
    )
    assert clean.split != wrong.split
    np.testing.assert_array_equal(
        open_split(store, clean.split).train_images, open_split(store, wrong.split).train_images
    )
    assert wrong.training.shape("model.image_pacing") == (9,)
    assert bound.training.shape("model.image_pacing") == (5,)

    evaluation = chain.record.scores["noisy"]["paced"][0]
    samples = training_samples(
        store,
        table=wrong.table,
        split=wrong.split,
        features=wrong.features,
        target="groups",
    )
    lost = samples[1].labels[~samples[1].right]
    right = np.concatenate([~np.isin(s.labels, lost) for s in samples])
    assert (~right).sum() == 8
    v = np.concatenate([wrong.training.array(f"model.{m}_pacing") for m in ("sketch", "image")])
    pairs = v[right][:, None] - v[~right]
    expected = ((pairs > 0) + 0.5 * (pairs == 0)).mean()
    assert told_apart(store, evaluation) == pytest.approx(expected)
    assert told_apart(store, chain.record.scores["noisy"]["unpaced"][0]) is None
    assert told_apart(store, chain.record.scores["clean"]["paced"][0]) is None

    report = store.open(chain.pieces["report"][0].reference)
    assert "noise_wrong-pairs.png" in report.names
    page = report.text("report.html")
    assert "Scores on a clean test over the share of wrong pairs" in page
    assert SHARE in page
    assert AUC in page
