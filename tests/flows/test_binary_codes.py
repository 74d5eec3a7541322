"""Binary codes in an experiment: of a method that learns them, and by quantisation of others."""

from typing import Any

import pytest

from cppcl.errors import InputError
from flows.configuration.load import load_experiment
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module", "blank_reports")

METHODS = {
    "dsh": {"bits": 8, "pacing": {"regularizer": "B"}},
    "raw_cosine": None,
    "itq": {"method": "raw_cosine", "itq_bits": 5},
}
SPLIT = {"rule": "category", "seeds": [0], "minimum_groups": 2}


@pytest.fixture(scope="module")
def root(tmp_path_factory, draw_pictures) -> Any:
    return draw_pictures(tmp_path_factory.mktemp("binary") / "shapes")


@pytest.fixture(scope="module")
def chain(root, run_plain, write_experiment, tmp_path_factory) -> Any:
    protocols = {"category": {"split": SPLIT, "methods": METHODS}}
    path = write_experiment(root, protocols=protocols)
    return run_plain(path, Workspace(tmp_path_factory.mktemp("workspace")))


def evaluation(chain, method):
    (reference,) = chain.record.scores["category"][method]
    return chain.workspace.store.open(reference)


@pytest.mark.parametrize(("method", "bits"), [("dsh", 8), ("itq", 5)])
def test_binary_codes_are_scored_within_a_radius(chain, method, bits):
    scored = evaluation(chain, method)
    document = scored.json("scores.json")
    assert document["counts"]["n_bits"] == bits
    assert 0 <= document["scores"]["precision_within_2"] <= 1
    codes = chain.workspace.store.open(scored.inputs["codes"]).array("image_codes")
    assert codes.shape[1] == bits
    assert set(codes.ravel().tolist()) <= {-1, 0, 1}


def test_real_codes_have_no_radius(chain):
    scored = evaluation(chain, "raw_cosine")
    assert "radius" not in scored.parameters
    assert "precision_within_2" not in scored.json("scores.json")["scores"]
    metrics = chain.record.metrics(chain.workspace.store)["category"]
    assert "precision_within_2" in metrics["chance"]
    assert "precision_within_2" not in metrics["raw_cosine"]


def test_a_paced_method_is_paced_by_the_curricula(chain):
    (lineage,) = (name for name in chain.pieces if name.startswith("train dsh"))
    trained = chain.workspace.store.open(chain.pieces[lineage][0].reference)
    assert "curricula" in trained.inputs
    assert {"model.sketch_pacing_rounds", "model.image_pacing_rounds"} <= set(trained.names)


def test_codes_that_are_binary_already_are_not_quantised(root, write_experiment):
    methods = {"dsh": {"itq_bits": 8}}
    protocols = {"category": {"split": SPLIT, "methods": methods}}
    with pytest.raises(InputError, match="itq_bits=8 makes binary codes of real ones"):
        load_experiment(str(write_experiment(root, protocols=protocols)), ())
