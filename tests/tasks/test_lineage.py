"""What stands behind an evaluation is what its stages were given."""

from typing import Any

import pytest

from storage import Reference
from tasks.lineage import Lineage, everything_behind, first_curricula
from tasks.stages.binary_codes import binary_codes_of
from tasks.stages.encode import encode_features


@pytest.fixture
def trained(stages: Any) -> Reference:
    options = {"n_atoms": 4, "alpha": 0.01, "n_rounds": 2}
    model: Reference = stages.train("cprl", options, stages.curricula())
    return model


def test_an_evaluation_names_what_its_stages_were_given(stages, trained):
    store = stages.workspace.store
    codes = stages.encode(trained)
    evaluation = stages.evaluate(codes)
    found = Lineage.of_evaluation(store, evaluation)
    assert (found.codes.reference, found.training.reference) == (codes, trained)
    assert (found.table, found.split) == (stages.table, stages.split)
    assert found.features == found.encoded == stages.features
    assert found.curricula == stages.curricula()
    cosine = stages.evaluate(stages.encode(stages.train("centred_cosine", {}, None)))
    assert Lineage.of_evaluation(store, cosine).curricula is None
    assert first_curricula(store, [cosine, evaluation]) == found.curricula
    assert first_curricula(store, [cosine]) is None
    behind = [artifact.reference for artifact in everything_behind(store, [evaluation, cosine])]
    assert len(behind) == len(set(behind))
    assert set(behind) == set(store.references())


def test_codes_that_were_made_binary_or_are_of_pictures_alone(stages, trained):
    store, space = stages.workspace.store, stages.workspace
    exact = stages.encode(trained)
    binary = binary_codes_of(workspace=space, codes=exact, split=stages.split, bits=3).reference
    found = Lineage.of_codes(store, binary)
    assert (found.codes.reference, found.training.reference) == (binary, trained)
    assert found.encoded == stages.features
    gallery = encode_features(
        workspace=space,
        model=trained,
        sketch_features=None,
        image_features=stages.features["image"],
    ).reference
    assert Lineage.of_codes(store, gallery).encoded == {"image": stages.features["image"]}
