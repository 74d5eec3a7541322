"""Values of options, combined: what is read, what is refused, and how it is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cppcl.errors import InputError
from flows.configuration.combinations import read_sweep
from flows.configuration.load import load_experiment


@pytest.fixture
def source(tmp_path: Path, make_experiment: Callable[..., dict[str, Any]]) -> str:
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump(make_experiment(tmp_path / "shapes"), sort_keys=False))
    return str(path)


def cprl(experiment: Any) -> Any:
    return experiment.protocols["instance"].methods["cprl"]


def test_every_combination_in_the_order_of_its_values(source):
    sweep = read_sweep(source, ["n_atoms=[3, 5]", "cprl.alpha=[0.1, 0.01, 1]"], ["beta=2"])
    assert [(axis.option, axis.values) for axis in sweep.axes] == [
        ("n_atoms", (3, 5)),
        ("cprl.alpha", (0.1, 0.01, 1.0)),
    ]
    made = [(cprl(c.experiment).n_atoms, cprl(c.experiment).alpha) for c in sweep.combinations]
    assert made == [(n, alpha) for n in (3, 5) for alpha in (0.1, 0.01, 1.0)]
    assert [tuple(c.values.values()) for c in sweep.combinations] == made
    assert {cprl(c.experiment).beta for c in sweep.combinations} == {2.0}
    assert str(sweep.combinations[1]) == "n_atoms=3, cprl.alpha=0.01"


def test_overrides_make_the_experiment(source):
    sweep = read_sweep(source, ["features.sketch.crop=[null, [0, 0, 20, 20]]"], ["seeds=[4]"])
    for combination in sweep.combinations:
        assert load_experiment(source, combination.overrides) == combination.experiment
        for protocol in combination.experiment.protocols.values():
            assert protocol.split.seeds == (4,)
    crops = [c.experiment.features.sketch.crop for c in sweep.combinations]
    assert crops == [None, (0, 0, 20, 20)]
    assert [c.experiment.features.image.crop for c in sweep.combinations] == [None, None]
    assert sweep.axes[0].values == (None, [0, 0, 20, 20])


def test_shares_of_both_sides_span_a_surface(source):
    sweep = read_sweep(source, ["sketch.rho=[0.1, 0.3]", "image.rho=[0.3, 1]"])
    assert [(axis.option, axis.values) for axis in sweep.axes] == [
        ("sketch.rho", (0.1, 0.3)),
        ("image.rho", (0.3, 1.0)),
    ]
    made = [c.experiment.curriculum.pairing() for c in sweep.combinations]
    pairs = [(m.get("sketch_rho", m.get("rho")), m.get("image_rho", m.get("rho"))) for m in made]
    assert pairs == [(0.1, 0.3), (0.1, 1.0), (0.3, 0.3), (0.3, 1.0)]


def test_values_are_those_that_the_experiment_reads(source):
    """YAML takes 1e-3 for a text."""
    sweep = read_sweep(source, ["alpha=[1e-3, 0.1, 1]"])
    assert sweep.axes[0].values == (0.001, 0.1, 1.0)
    assert sweep.axes[0].logarithmic
    assert sweep.combinations[0].values == {"alpha": 0.001}
    # An option with a grid, which is settled as well.
    sweep = read_sweep(source, ["ridge=[1e-3, 0.1]"])
    assert sweep.axes[0].values == (0.001, 0.1)
    for combination, ridge in zip(sweep.combinations, (0.001, 0.1), strict=True):
        method = combination.experiment.protocols["category"].methods["class_cca"]
        assert (method.ridge, method.tune) == (ridge, {"ridge": (ridge,)})


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("regularizer=[A, B]", ("A", "B")),
        ("dataset.root=['a #2', '2024', émoji 😀]", ("a #2", "2024", "émoji 😀")),
        ("whiten=[true, false]", (True, False)),
        ("workers=[null, 2]", (None, 2)),
        ("description=['null', \"it's\"]", ("null", "it's")),
        ("curriculum.sketch=[{name: edgeness}]", ({"name": "edgeness"},)),
        (" alpha = [0.1]", (0.1,)),
    ],
)
def test_values_of_any_kind(option, values, source):
    sweep = read_sweep(source, [option])
    assert sweep.axes[0].values == values
    assert len(sweep.combinations) == len(values)
    if option.startswith("dataset.root"):
        roots = [str(c.experiment.dataset.root) for c in sweep.combinations]
        assert roots == list(values)


def test_combinations_have_a_name_of_their_own(source):
    sweep = read_sweep(source, ["n_atoms=[3]", "instance.methods.cprl.alpha=[0.1]"])
    assert sweep.experiment == "tiny"
    assert sweep.name == "tiny-sweep-n_atoms-instance-methods-cprl-alpha"
    assert [c.experiment.name for c in sweep.combinations] == [sweep.name]
    assert sweep.combinations[0].experiment.dataset.registered_name == "folder"
    long = read_sweep(source, ["n_atoms=[3]"], [f"name={'a' * 80}"])
    assert long.name == f"{'a' * 40}-sweep-n_atoms"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["n_atoms"], r"'n_atoms' must read OPTION=VALUES, such as n_atoms='\[25, 50, 100\]'"),
        (["=[1]"], r"'=\[1\]' must read OPTION=VALUES"),
        (["n_atoms=50"], r"'n_atoms=50': the values must be a list of at least one"),
        (["n_atoms=[]"], r"'n_atoms=\[\]': the values must be a list of at least one"),
        (["n_atoms={a: 1}"], r"the values must be a list"),
        (["n_atoms=[25,", "50]"], r"(?s)'n_atoms=\[25,': .* give a list in quotes"),
        (["n_atoms=[2024-01-01]"], r"the values are not plain YAML \(.*date"),
        (["alpha=[.inf]"], r"the values are not plain YAML"),
        (["root=[\udcff]"], r"the values are not plain YAML"),
        (["n_atoms=[3]", "n_atoms=[4]"], r"an option is given twice; put its values into one"),
        (
            ["n_atoms=[3]", "alpha=[1]", "beta=[1]"],
            r"sweep over 3 options \(n_atoms, alpha, beta\): a plot shows 1 or 2; fix the others "
            r"with --set",
        ),
        ([], r"sweep over 0 options"),
        (["alhpa=[1]"], r"sweep alhpa=1: alhpa: the experiment has no such option; did you mean"),
        (["n_atoms=[3, -4]"], r"(?s)sweep n_atoms=-4: .*n_atoms=-4 must be a whole number"),
        (["n_atoms=[3, x]"], r"(?s)sweep n_atoms=x: .*n_atoms: .*\(got 'x'\)"),
        (["n_atoms=[3, 3]"], r"sweep n_atoms=3: the same experiment as n_atoms=3; leave"),
        (["alpha=[0.001, 1e-3]"], r"sweep alpha=1e-3: the same experiment as alpha=0\.001"),
        (["size=[[8, 8], [8.0, 8]]"], r"the same experiment as size=\[8, 8\]"),
        # What the second option sets, the first does not.
        (["n_atoms=[3, 4]", "cprl.n_atoms=[5]"], r"n_atoms=4, cprl.n_atoms=5: .* n_atoms=3, cprl"),
        (["name=[a, b]"], r"the same experiment"),
        # Each value is possible, but not with every other.
        (
            ["regularizer=[A, B]", "selection=[relaxed, binary]"],
            r"(?s)sweep regularizer=B, selection=binary: .*use regularizer='A'",
        ),
    ],
)
def test_what_is_refused(options, message, source):
    with pytest.raises(InputError, match=message):
        read_sweep(source, options)


def test_values_may_be_possible_only_together(source):
    sweep = read_sweep(source, ["regularizer=[A]", "selection=[relaxed, binary]"])
    assert len(sweep.combinations) == 2


def test_the_score_must_be_one_of_every_combination(source):
    assert read_sweep(source, ["n_atoms=[3]"], score="map").score == "map"
    assert read_sweep(source, ["n_atoms=[3]"], score="rank_2").score == "rank_2"
    with pytest.raises(InputError, match=r"--score rank_5 is not one of rank_1, rank_2, map; .*"):
        read_sweep(source, ["n_atoms=[3]"], score="rank_5")
    assert read_sweep(source, ["n_atoms=[3]"], ["ranks=[5]"], score="rank_5")
    with pytest.raises(InputError, match=r"--score rank_5 is not one of rank_1, map"):
        read_sweep(source, ["ranks=[[5], [1]]"], score="rank_5")


def test_trouble_with_the_experiment_itself_is_told_as_for_a_run(source):
    for overrides in (["alhpa=1"], ["rho=2"]):
        with pytest.raises(InputError) as of_run:
            load_experiment(source, overrides)
        with pytest.raises(InputError) as of_sweep:
            read_sweep(source, ["n_atoms=[3]"], overrides)
        assert str(of_sweep.value) == str(of_run.value)
    with pytest.raises(InputError, match="'emojis' is neither one of"):
        read_sweep("emojis", ["n_atoms=[3]"])
