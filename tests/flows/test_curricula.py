"""Scores that learn, and people's answers, in the chain."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.modality import MODALITIES
from flows.configuration.experiment import Experiment
from flows.configuration.load import load_experiment
from flows.configuration.options import PAIRING
from tasks.lineage import first_curricula
from tasks.reporting.curricula import curriculum_results
from tasks.samples import open_pictures, open_split
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module", "blank_reports")

OBJECTNESS = {"name": "objectness", "n_windows": 20, "n_candidates": 60}
EDGENESS = {"name": "edgeness", "n_windows": 20}
PACED = {"curricula instance", "train cprl", "encode cprl", "evaluate cprl", "report"}


def changed_pieces(before: Any, after: Any) -> set[str]:
    """Pieces of the first chain whose artifacts are others in the second."""
    return {
        name
        for name, pieces in before.pieces.items()
        if [p.reference for p in pieces] != [p.reference for p in after.pieces[name]]
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, draw_pictures: Callable[..., Path]) -> Path:
    return draw_pictures(tmp_path_factory.mktemp("curricula") / "shapes")


@pytest.fixture(scope="module")
def write(root: Path, write_experiment: Callable[..., Path]) -> Callable[..., Path]:
    def write(**curriculum: Any) -> Path:
        protocol = {
            "split": {"rule": "instance", "n_train": 7, "seeds": [0, 1]},
            "methods": {
                "cprl": {"n_atoms": 4, "n_rounds": 2, "initialization": {"n_initial_rounds": 1}}
            },
        }
        scores = {"sketch": EDGENESS, "image": OBJECTNESS}
        return write_experiment(
            root, protocols={"instance": protocol}, curriculum={**scores, **curriculum}
        )

    return write


def test_a_score_learns_from_its_own_side_in_every_split(write, run_plain, tmp_path):
    place = Workspace(tmp_path / "workspace")
    file = write()
    assert load_experiment(str(file)).curriculum.image.learn_from == "image"
    chain = run_plain(file, place)
    learned = chain.pieces["learn image objectness instance"]
    assert len({str(piece.reference) for piece in learned}) == 2
    scores = chain.pieces["extract image objectness"]
    assert len({str(piece.reference) for piece in scores}) == 2
    of_split = [place.store.open(piece.reference) for piece in scores]
    assert [str(a.inputs["learned"]) for a in of_split] == [str(p.reference) for p in learned]
    assert all(np.ptp(artifact.array("features")) > 0 for artifact in of_split)
    assert all(
        piece.cached for pieces in run_plain(file, place).pieces.values() for piece in pieces
    )


def test_answers_lie_beside_the_file_that_names_them(write, run_plain, tmp_path):
    place = Workspace(tmp_path / "workspace")
    without = run_plain(write(), place)
    samples = open_pictures(place.store, without.pieces["fetch"][0].reference).table
    ids = samples.column("ids", "sketch")
    file = write(sketch_answers="answers.csv")
    lines = [f"{a},{b},a" for a, b in itertools.pairwise(ids)]
    answers = file.with_name("answers.csv")
    answers.write_text("\n".join(["sample_a,sample_b,easier", *lines]))
    assert load_experiment(str(file)).curriculum.answers() == {"sketch": answers}
    given = run_plain(file, place)
    counted = [
        place.store.open(piece.reference).json("counts.json")["sketch"]["answers"]
        for piece in given.pieces["curricula instance"]
    ]
    assert all(counts["answers"] == len(lines) for counts in counted)
    assert all(0 < counts["pairs"] < len(lines) for counts in counted), (
        "of training sketches alone"
    )
    assert changed_pieces(without, given) == PACED


def test_a_simulated_annotator_answers_where_nobody_did(write, run_plain, tmp_path):
    place = Workspace(tmp_path / "workspace")
    without = run_plain(write(), place)
    simulated = run_plain(write(sketch_source="simulated", answer_share=0.6), place)
    assert {"extract sketch hog", "extract sketch stroke_length"} <= simulated.pieces.keys()
    for piece in simulated.pieces["curricula instance"]:
        made = place.store.open(piece.reference)
        counts = made.json("counts.json")
        decided = counts["sketch"]["answers"]["answers"] - counts["sketch"]["answers"]["skipped"]
        assert counts["sketch"]["annotator"] == "simulated"
        assert 0 < counts["sketch"]["hinges"] == round(0.6 * decided)
        assert "answers" not in counts["image"]
        detail = place.store.open(made.inputs["annotator_detail"]).array("features")[:, 0]
        rows = open_split(place.store, made.inputs["split"]).train_sketches
        harder, easier = made.array("sketch_pairs").T
        assert (detail[rows[harder]] < detail[rows[easier]]).all()
    assert changed_pieces(without, simulated) == PACED


def test_a_source_and_its_file_go_together(write):
    with pytest.raises(InputError, match="sketch_source=answers needs sketch_answers"):
        load_experiment(str(write(sketch_source="answers")))
    with pytest.raises(InputError, match=r"not used as sketch_source is simulated; set it to"):
        load_experiment(str(write(sketch_source="simulated", sketch_answers="a.csv")))
    with pytest.raises(InputError, match="sketch_source=drawn needs the data set emoji-drawn"):
        load_experiment(str(write(sketch_source="drawn")))
    scores = "{sketch: {name: precomputed}, image: {name: precomputed}, sketch_source: simulated}"
    with pytest.raises(InputError, match=r"simulated looks at pictures, .*'matrices' has none"):
        load_experiment("matrices", [f"curriculum={scores}"])
    with pytest.raises(InputError, match=r"image_answers=.*not used as image_source is scores"):
        load_experiment(str(write(image_source="scores", image_answers="a.csv")))


def test_pairs_of_the_sides_may_differ_and_common_values_are_one_option():
    def pairing(*overrides: str) -> dict[str, Any]:
        return load_experiment("emoji", overrides).curriculum.pairing()

    common = pairing()
    # These are keys of what is stored: an option more, or one of another type, is another key.
    assert {name: common[name] for name in ("delta", "rho")} == {"delta": 0.5, "rho": 0.3}
    assert not {f"{modality}_{name}" for modality in MODALITIES for name in PAIRING} & set(common)
    for overrides in (
        ("rho=0.7",),
        ("curriculum.rho=0.7",),
        ("sketch.rho=0.7", "image.rho=0.7"),
        ("sketch.rho=0.1", "rho=0.7"),
        ("curriculum.rho=0.1", "sketch.rho=0.7", "image.rho=0.7"),
    ):
        assert pairing(*overrides) == {**common, "rho": 0.7}, overrides
    without = {name: value for name, value in common.items() if name != "rho"}
    for overrides, sketch, image in (
        (("sketch.rho=0.7",), 0.7, 0.3),
        (("rho=1", "image.rho=0.7"), 1.0, 0.7),
    ):
        assert pairing(*overrides) == {**without, "sketch_rho": sketch, "image_rho": image}
    assert pairing("curriculum.image.delta=1")["image_delta"] == 1
    for override, message in (
        ("sketch.rho=2", r"curriculum\.sketch\.edgeness\.rho: .*got 2"),
        ("image.delta=-1", r"curriculum\.image\.\w+\.delta: .*got -1"),
        ("features.sketch.rho=0.3", "has no such option"),
    ):
        with pytest.raises(InputError, match=message):
            load_experiment("emoji", [override])


def test_a_combined_score_has_pairs_of_its_own(write):
    file = str(write(sketch={"name": "edgeness+pixels", "rho": 0.1}))
    experiment = load_experiment(file)
    assert experiment.curriculum.pairing()["sketch_rho"] == 0.1
    assert "rho" not in experiment.curriculum.sketch.arguments()
    assert Experiment.model_validate(experiment.model_dump(mode="json")) == experiment


def test_one_side_alone_may_have_a_curriculum(write, run_plain, tmp_path):
    place = Workspace(tmp_path / "workspace")
    chain = run_plain(write(), place, "sketch.rho=0")
    counts = place.store.open(chain.pieces["curricula instance"][0].reference).json("counts.json")
    assert counts["sketch"]["hinges"] == 0 < counts["sketch"]["admissible"]
    assert counts["image"]["hinges"] > 0
    assert chain.pieces["evaluate cprl"]
    assert chain.pieces["report"]
    for overrides in (["rho=0"], ["image.rho=0"]):
        with pytest.raises(InputError, match=r"rho=0 means no pairs, but pair_form=chain counts"):
            load_experiment("emoji", [*overrides, "pair_form=chain"])


def test_a_report_shows_the_curricula_of_the_first_split(write, run_plain, tmp_path):
    place = Workspace(tmp_path / "workspace")
    chain = run_plain(write(), place, "image.rho=0.8")
    evaluations = [piece.reference for piece in chain.pieces["evaluate cprl"]]
    curricula = first_curricula(place.store, evaluations)
    assert curricula == chain.pieces["curricula instance"][0].reference

    def reader(modality: Any) -> Any:
        return lambda row: (np.full((4, 4, 3), row, dtype=np.uint8), f"{modality} {row}")

    rows_of = open_split(place.store, chain.pieces["split instance"][0].reference)
    sketches, images = curriculum_results(place.store, curricula, reader)
    assert (sketches.score, images.score) == ("edgeness", "objectness")
    assert (sketches.options["rho"], images.options["rho"]) == (0.3, 0.8)
    for result, rows in ((sketches, rows_of.train_sketches), (images, rows_of.train_images)):
        assert len(result.scores) == len(rows) == 7
        shown = [picture.score for picture in result.easiest]
        assert shown == sorted(result.scores, reverse=True)[:6]
        assert [p.score for p in result.hardest] == sorted(result.scores)[:6]
        best = rows[int(np.argmax(result.scores))]
        assert result.easiest[0].label == f"{result.modality} {best}"
        assert (result.easiest[0].picture == best).all()
        assert result.pairs[0, -1] == 21  # all pairs of seven samples, each of its own group
        assert result.counts["hinges"] > 0
    vectors = curriculum_results(place.store, curricula, lambda m: lambda row: (np.zeros(3), ""))
    assert all(not result.easiest and not result.hardest for result in vectors)


def test_a_report_without_curricula(root, write_experiment, run_plain, tmp_path):
    protocol = {"split": {"rule": "instance", "n_train": 7}, "methods": {"centred_cosine": None}}
    place = Workspace(tmp_path / "workspace")
    chain = run_plain(write_experiment(root, protocols={"instance": protocol}), place)
    evaluations = [piece.reference for piece in chain.pieces["evaluate centred_cosine"]]
    assert first_curricula(place.store, evaluations) is None
