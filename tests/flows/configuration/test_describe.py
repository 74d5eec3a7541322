"""Options in words: all of them, with the values that hold."""

from pathlib import Path
from typing import Any

import pytest

from cppcl.datasets import DATASETS
from cppcl.features import EXTRACTORS
from cppcl.methods import METHODS
from flows.configuration.describe import all_options, options_of
from flows.configuration.experiment import Experiment
from flows.configuration.load import load_experiment, option_paths, packaged_experiments
from flows.configuration.options import documented_parameters

DATA = "dataset, dataset.train_on, dataset.test_on"


def test_every_option_there_is_has_a_meaning():
    sections = all_options()
    assert [(s, row) for s, rows in sections.items() for row in rows if not row[2]] == []
    titles = "\n".join(sections)
    for name in DATASETS:
        assert f"{DATA} (name: {name})" in sections
    for name in EXTRACTORS:
        assert f"curriculum.image (name: {name})" in titles
    for name in METHODS:
        assert f"protocols.NAME.methods.NAME (method: {name})" in sections
    for rule in ("instance", "category"):
        assert f"protocols.NAME.split (rule: {rule})" in sections


def test_defaults_and_choices():
    sections = all_options()
    rows = {
        (place, name): (default, meaning)
        for place, section in sections.items()
        for name, default, meaning in section
    }
    cprl = "protocols.NAME.methods.NAME (method: cprl)"
    assert rows[cprl, "alpha"][0] == "0.003"
    assert rows[cprl, "pacing"][0] == "below"
    methods = "protocols.NAME.methods.NAME"
    pacing = f"{methods}.pacing, {methods}.cprl.pacing (CPRL)"
    assert rows[pacing, "regularizer"][0] == "B"
    assert rows[pacing, "regularizer"][1].endswith("; one of B, A, none")
    assert rows[pacing, "gamma0"][0] == "null"
    # The same group of options in several methods is described once, unless defaults differ.
    preparation = f"{methods}.preparation"
    found = {place: row[0] for (place, name), row in rows.items() if name == "whiten"}
    assert found == {
        f"{preparation} (CPRL)": "true",
        f"{preparation} (DSH)": "false",
        preparation: "false",
        f"{methods}.cprl.preparation": "false",
    }
    assert rows[f"{DATA} (name: folder)", "root"][0] == "required"
    assert rows["experiment", "compute"][0] == "below"
    # Options of pairs are told once, not under each extractor that may score.
    both = "curriculum.sketch, curriculum.image"
    assert rows[both, "rho"] == (
        "null",
        "Share of this modality's admissible pairs that a sample keeps, 0 for no pairs by its "
        "scores; that of both if none",
    )
    assert rows["curriculum", "rho"][0] == "0.3"
    assert [place for place, name in rows if name == "rho"] == ["curriculum", both]
    # Documented in the base class alone.
    cca = "protocols.NAME.methods.NAME (method: class_cca)"
    assert rows[cca, "n_directions"][1].startswith("Length of the codes")


@pytest.mark.parametrize("name", sorted(packaged_experiments()))
def test_options_of_an_experiment_are_those_that_can_be_set(name):
    assert_options_are_those_that_can_be_set(load_experiment(name, ["seeds=[4]"]))


def test_published_scores_are_options():
    published = "{source: x, score: map, values: {cprl: 0.5, ridge_cca: 0.4}}"
    experiment = load_experiment("emoji", ["seeds=[4]", f"instance.published={published}"])
    assert_options_are_those_that_can_be_set(experiment)
    rows = {name: row for name, *row in options_of(experiment)["protocols.instance.published"]}
    assert rows["values.ridge_cca"] == ["0.4", "Score as a fraction, by method of the protocol"]
    assert (rows["trials"][0], rows["titles"][0]) == ("null", "{}")
    assert set(rows) == {"source", "score", "trials", "values.cprl", "values.ridge_cca", "titles"}
    everything = {name for name, *_ in all_options()["protocols.NAME.published"]}
    assert everything == {"source", "score", "trials", "values", "titles"}


def assert_options_are_those_that_can_be_set(experiment: Experiment) -> None:
    shown: dict[str, str] = {}
    for title, rows in options_of(experiment).items():
        place = title.partition(" (")[0].removeprefix("experiment")
        shown |= {".".join(filter(None, [place, option])): value for option, value, _ in rows}
    paths = {".".join(path) for path in option_paths(experiment)}
    groups = {path.rpartition(".")[0] for path in paths} - {""}
    assert set(shown) == paths - {g for group in groups for g in prefixes(group)}
    assert {v for path, v in shown.items() if path.endswith(".seeds")} == {"[4]"}


def prefixes(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]


def test_meanings_come_from_docstrings_of_a_class_and_its_bases():
    class Base:
        """A base.

        Parameters
        ----------
        size : int
            As the base
            says.
        left, right : float, optional
            Either side.

        Raises
        ------
        ValueError
            Never.
        """

    class Derived(Base):
        """More.

        Parameters
        ----------
        size : int
            As ``Derived`` says.

        `left` is that of `Base`.
        """

    documented: dict[str, Any] = documented_parameters(Derived)
    assert documented.pop("size") == "As Derived says."
    assert documented["left"] == documented["right"] == "Either side."
    assert documented_parameters(Base)["size"] == "As the base says."
    assert documented_parameters(Path) == {}
