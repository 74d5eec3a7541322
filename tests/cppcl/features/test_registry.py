import subprocess
import sys

import pytest

from cppcl.errors import InputError
from cppcl.features import EXTRACTORS, make_extractor
from cppcl.features.options import nearest_names


def test_importing_the_registry_loads_nothing_heavy():
    code = (
        "import sys, cppcl.features; "
        "print({'torch', 'torchvision', 'skimage', 'scipy', 'PIL'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_name_makes_its_extractor():
    for name, extractor in EXTRACTORS.items():
        assert type(make_extractor(name)) is extractor


def test_unknown_extractor_names_the_nearest():
    with pytest.raises(InputError, match=r"no feature extractor 'pixel'.*'pixels'"):
        make_extractor("pixel")


def test_unknown_extractor_unlike_any_lists_all():
    with pytest.raises(InputError, match=f"known are: {', '.join(sorted(EXTRACTORS))}"):
        make_extractor("zzzz")


def test_unknown_option_names_the_nearest():
    with pytest.raises(InputError, match=r"'cnn' has no option 'netwrk'.*'network'"):
        make_extractor("cnn", {"netwrk": "alexnet:classifier.1"})


def test_option_of_an_extractor_without_any():
    with pytest.raises(InputError, match=r"'hog' has no option 'size'.*none"):
        make_extractor("hog", {"size": 3})


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("pixels", {"size": 32}, "size=32 .*2 integers"),
        ("pixels", {"size": [32]}, "2 integers"),
        ("pixels", {"size": [0, 4]}, "at least 1"),
        ("pixels", {"size": [4.0, 4]}, "integers"),
        ("pixels", {"size": [True, 4]}, "integers"),
        ("pixels", {"crop": [5, 0, 5, 3]}, "right must exceed left"),
        ("pixels", {"crop": [0, 3, 5, 3]}, "bottom must exceed top"),
        ("pixels", {"crop": [-1, 0, 5, 3]}, "at least 0"),
        ("pixels", {"normalisation": "zero_mean"}, "zero_mean_unit_variance"),
        ("pixels", {"color": "grey"}, "'gray'"),
        ("cnn", {"network": "alexnet"}, "alexnet:classifier.1"),
        ("cnn", {"network": ":fc"}, "network=':fc'"),
        ("cnn", {"network": None}, "network=None"),
        ("cnn", {"weights": 3}, "weights=3"),
        ("cnn", {"relu": "yes"}, "relu='yes'.*true or false"),
        ("precomputed", {"length": 0}, "length=0"),
        ("edgeness", {"n_windows": 0}, "n_windows=0"),
        ("edgeness", {"seed": -1}, "seed=-1"),
        ("edgeness", {"thin": 1}, "thin=1"),
        ("colour_contrast", {"n_windows": 2.5}, r"n_windows=2\.5"),
        ("colour_contrast", {"seed": True}, "seed=True"),
    ],
)
def test_wrong_values_of_options_are_named(name, options, words):
    with pytest.raises(InputError, match=words):
        make_extractor(name, options)


def test_nearest_names():
    assert nearest_names("pixel", ["pixels", "hog"]) == "did you mean 'pixels'?"
    assert nearest_names("zzz", ["pixels", "hog"]) == "known are: hog, pixels"
    assert nearest_names("zzz", []) == "known are: none"
