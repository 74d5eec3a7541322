"""What a CPRL has otherwise than the paper, as its options say."""

import pytest

from cppcl import CPRL
from cppcl.features import make_extractor
from cppcl.learning.departures import PRINTED
from cppcl.methods import METHODS

PLAIN = {"n_components": None, "whiten": False, "power": 1.0}


@pytest.mark.parametrize(
    ("changes", "aspect", "words"),
    [
        ({}, "sign of B", "corrected"),
        ({"printed": ["sign"]}, "sign of B", PRINTED),
        ({}, "graph", "no weights within a modality"),
        ({"graph": {"within": "knn"}}, "graph", "neighbours of a class alone"),
        ({"printed": ["dense_graph"]}, "graph", PRINTED),
        ({"beta": 0.0}, "graph", PRINTED),
        ({}, "weights of the graph", "over their mean degree"),
        ({"printed": ["unscaled_graph"]}, "weights of the graph", PRINTED),
        ({}, "coupling of pacing", "that of the code step"),
        ({"printed": ["coupling"]}, "coupling of pacing", PRINTED),
        ({"pacing": {"regularizer": "none"}}, "coupling of pacing", PRINTED),
        ({}, "L1 norm", "weighed by pacing"),
        ({"printed": ["l1"]}, "L1 norm", PRINTED),
        ({"pacing": {"regularizer": "A"}}, "groups of A", "over their mean"),
        ({}, "groups of A", PRINTED),
        ({}, "mu", "in units of gamma and of pairs a sample"),
        ({"printed": ["pair_weight"]}, "mu", "0.5, a value that is not printed"),
        ({"pacing": {"mu": 0.0}}, "mu", PRINTED),
        ({}, "first dictionaries", "joint in place of independent"),
        ({"initialization": {"dictionaries": "independent"}}, "first dictionaries", PRINTED),
        ({"preparation": PLAIN}, "features", "centred, of unit norm"),
        ({}, "features", "entries to a power, centred, of unit norm, projected, whitened"),
        (
            {"preparation": {**PLAIN, "center": False, "unit_norm": False}},
            "features",
            PRINTED,
        ),
        ({}, "scores of curricula", "image: colour contrast"),
        ({"pacing": {"mu": 0.0}}, "scores of curricula", PRINTED),
    ],
)
def test_what_a_line_as_printed_has_otherwise_is_read_from_its_options(changes, aspect, words):
    scores = {"sketch": make_extractor("edgeness"), "image": make_extractor("colour_contrast")}
    found = CPRL(**changes).departures((2400, 1280), scores)
    assert found[aspect] == words


def test_scores_and_dictionaries_of_the_paper_are_known_as_such():
    printed = {"image": make_extractor("objectness", {"easiness": "printed"})}
    found = CPRL().departures((5, 5), printed)
    assert found["scores of curricula"] == found["first dictionaries"] == PRINTED
    ours = CPRL().departures((5, 5), {"image": make_extractor("objectness")})
    assert ours["scores of curricula"] == "image: objectness (relative)"


def test_other_methods_say_nothing():
    assert METHODS["class_cca"]().departures((5, 5), {}) == {}
