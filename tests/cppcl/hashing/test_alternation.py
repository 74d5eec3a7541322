"""Every step of the alternation lowers the objective."""

import numpy as np
import pytest

from cppcl.curriculum import ExplicitPairs
from cppcl.hashing.alternation import HashAlternation
from cppcl.hashing.functions import BitRegression
from cppcl.optim.pacing.options import Pacing

PACED = {
    "none": Pacing(regularizer="none", coupling="none"),
    "B": Pacing(regularizer="B", coupling="none", eta=1.5),
    "A": Pacing(regularizer="A", coupling="none", eta=1.5),
}


def alternation(pacing, seed=0, sizes=(40, 25), odds=None):
    rng = np.random.default_rng(seed)
    classes = [rng.permutation(np.arange(n) % 4) for n in sizes]
    centres = 2 * rng.normal(size=(4, 6))
    features = [centres[of] + rng.normal(size=(len(of), 6)) for of in classes]
    n = sum(sizes)
    weights = np.ones(n) if pacing != "none" else rng.uniform(0.2, 1, n)
    pairs = rng.permutation(sizes[0])[:20].reshape(10, 2)
    made = HashAlternation(
        tuple(classes),
        BitRegression(tuple(features), weights, ridge=0.01, sharing=0.5),
        n_bits=6,
        unlike=1 / 3,
        label_weight=0.5,
        function_weight=0.4,
        weights=weights,
        pacing_options=PACED[pacing],
        curricula=(ExplicitPairs(pairs, sizes[0]), None),
        odds=odds,
    )
    made.start(rng)
    return made


@pytest.mark.parametrize(
    ("pacing", "judged"), [("none", False), ("B", False), ("B", True), ("A", True)]
)
def test_every_step_lowers_the_objective(pacing, judged):
    odds = np.random.default_rng(1).exponential(size=65) if judged else None
    made = alternation(pacing, odds=odds)
    sketches, images = made.sides
    # Codes that nothing has made good yet, so that every kind of step has something to do.
    for side in made.sides:
        side.codes = np.random.default_rng(2).choice([-1.0, 1.0], side.codes.shape)
    steps = {
        "pacing": made.step_pacing,
        "map": made.objective.step_class_map,
        "images": lambda: made.objective.step_codes(images),
        "sketches": lambda: made.objective.step_codes(sketches),
        "functions": made.step_functions,
    }
    if pacing == "none":
        del steps["pacing"]
    lowered = dict.fromkeys(steps, 0.0)
    if pacing != "none":
        made.step_pacing()  # sets the first gamma, and with it the objective
    for _ in range(4):
        for name, step in steps.items():
            before = made.value()
            step()
            after = made.value()
            assert after <= before + 1e-9 * abs(before), name
            lowered[name] += before - after
        made.pacing.advance()
    assert min(lowered.values()) > 0


def test_a_run_ends_when_no_bit_changes_and_records_every_round():
    made = alternation("none")
    made.run(50)
    columns = made.columns()
    assert columns.keys() == {"objective", "changed_bits"}
    assert columns["changed_bits"][-1] == 0
    assert len(columns["objective"]) < 50
    assert (np.diff(columns["objective"]) <= 1e-9).all()


def test_a_paced_run_takes_up_every_sample_in_the_end():
    made = alternation("A")
    made.run(60)
    columns = made.columns()
    assert columns["sketch_mean_v"][0] < 0.9
    assert columns["sketch_mean_v"][-1] == columns["image_mean_v"][-1] == 1
    assert len(columns["gamma"]) < 60
    assert columns["pacing_kkt"].max() < 1e-4
