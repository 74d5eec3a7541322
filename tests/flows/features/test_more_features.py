"""Methods of one experiment on different features, each with its own similarity."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.retrieval.metrics import evaluate
from flows.configuration.load import load_experiment
from tasks.stages.evaluate import open_test_set
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module")

SMALL = {"sketch": {"name": "pixels", "size": [4, 4]}, "image": {"name": "pixels", "size": [4, 4]}}
METHODS = {
    "raw_cosine": None,
    "raw_l2": {"method": "raw_cosine", "metric": "l2"},
    "small": {"method": "raw_cosine", "features": "small", "metric": "intersection"},
    "tuned": {
        "method": "class_cca",
        "features": "small",
        "metric": "l2",
        "tune": {"ridge": [0.1, 1.0]},
    },
}


@pytest.fixture(scope="module")
def write(tmp_path_factory, draw_pictures, write_experiment) -> Callable[..., str]:
    root = draw_pictures(tmp_path_factory.mktemp("more") / "shapes")

    def write(**changes: Any) -> str:
        protocol = {"split": {"rule": "instance", "n_train": 7, "seeds": [0, 1]}} | changes
        return str(
            write_experiment(
                root,
                more_features={"small": SMALL},
                curriculum=None,
                protocols={"instance": {"methods": METHODS} | protocol},
            )
        )

    return write


@pytest.fixture(scope="module")
def chain(write, run_plain, tmp_path_factory) -> Any:
    return run_plain(write(), Workspace(tmp_path_factory.mktemp("workspace")))


def test_each_pair_is_extracted_once(chain):
    extracted = {name: len(found) for name, found in chain.pieces.items() if "extract" in name}
    assert extracted == {"extract sketch pixels": 2, "extract image pixels": 2}


@pytest.mark.parametrize(
    ("method", "width", "metric"),
    [
        ("raw_cosine", None, "cosine"),
        ("raw_l2", None, "l2"),
        ("small", 16, "intersection"),
        ("tuned", 16, "l2"),
    ],
)
def test_methods_use_the_features_and_the_similarity_they_ask_for(chain, method, width, metric):
    store = chain.workspace.store
    for scored in chain.record.scores["instance"][method]:
        evaluation = store.open(scored)
        assert evaluation.parameters["metric"] == metric
        codes = store.open(evaluation.inputs["codes"])
        model = store.open(codes.inputs["model"])
        for name in ("sketch_features", "image_features"):
            assert model.inputs[name] == codes.inputs[name]
            found = store.open(codes.inputs[name]).shape("features")[1]
            assert (found == 16) == (width == 16)
        of_test = open_test_set(
            store,
            codes.reference,
            evaluation.inputs["split"],
            evaluation.inputs["table"],
            "groups",
        )
        expected = evaluate(
            of_test.query_codes,
            of_test.gallery_codes,
            of_test.query_labels,
            of_test.gallery_labels,
            metric=metric,
            ranks=(1, 5),
        )
        np.testing.assert_array_equal(
            evaluation.array("average_precision"), expected.average_precision
        )


def test_a_search_goes_by_the_similarity_of_its_method(chain):
    store = chain.workspace.store
    for tuning in chain.record.tunings["instance"]["tuned"]:
        job = store.open(tuning).inputs["job-0000"]
        assert store.open(job).parameters["metric"] == "l2"


def test_queries_go_by_the_similarity_of_the_method_they_use(chain):
    place, store = chain.workspace, chain.workspace.store
    place.record_run(
        "tiny",
        "20260101T000000000000Z",
        {
            "experiment": "tiny",
            "artifacts": {},
            "configuration": chain.experiment.model_dump(mode="json"),
            "evaluations": chain.record.evaluations(),
            "all_artifacts": chain.record.all_artifacts(),
        },
    )
    for method, metric in (("raw_cosine", "cosine"), ("small", "intersection"), ("tuned", "l2")):
        evaluation = store.open(chain.record.scores["instance"][method][1])
        model = store.open(evaluation.inputs["codes"]).inputs["model"]
        assert place.metric_of(model) == metric


def test_features_that_are_not_there_are_named(write):
    source = write(methods={"raw_cosine": {"features": "smal"}})
    with pytest.raises(
        InputError,
        match=r"instance\.methods\.raw_cosine\.features=smal is not in more_features \(small\)"
        r".*did you mean 'small'.*; add it there",
    ):
        load_experiment(source)


def test_a_similarity_that_is_not_there_is_named(write):
    with pytest.raises(InputError, match=r"metric.*'cosine', 'l2' or 'intersection'"):
        load_experiment(write(methods={"raw_cosine": {"metric": "euclid"}}))
