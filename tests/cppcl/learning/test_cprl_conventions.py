"""CPRL as an estimator: options, copies, what is fitted, what `import cppcl` costs."""

import ast
import copy
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from sklearn.base import clone

import cppcl
from cppcl.errors import InputError, NotFittedError
from cppcl.learning.composition import Composition
from cppcl.learning.cprl import CPRL
from cppcl.learning.options import Coding, Graph, Initialization  # noqa: F401 (eval)
from cppcl.learning.preparation import Preparation
from cppcl.optim.pacing.options import Pacing  # noqa: F401 (eval)
from tests.nested import nested

COMPANIONS = {
    ("pacing__selection", "binary"): {"pacing__regularizer": "A"},
    ("device", "cuda"): {"coding__code_solver": "gradient"},
}
"""Options that a value needs beside it."""


def option_values(kind, prefix=""):
    """Each option, by ``group__option``, with values that are not its default."""
    hints, defaults = get_type_hints(kind), kind().get_params(deep=False)
    for name, default in defaults.items():
        hint = hints[name]
        if name in kind.groups():
            yield from option_values(hint, f"{name}__")
            continue
        if get_origin(hint) is Literal:
            values = [choice for choice in get_args(hint) if choice != default]
        elif default == "auto":
            values = [4] if int in get_args(hint) else [0.25]
        elif get_origin(hint) is tuple:
            values = [("sign",), ("l1", "dual")]
        elif hint is bool:
            values = [not default]
        elif hint is str:
            values = ["cuda"]
        else:
            values = [3 if default is None else default * 2 + 1]
        yield from ((prefix + name, value) for value in values)


OTHER = nested(n_atoms=4, alpha=0.01, n_rounds=3, n_components=3, whiten=True, seed=7)


def data(seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(8) % 4
    return rng.standard_normal((8, 6)), rng.standard_normal((8, 7)), labels, labels


def test_the_class_comes_with_the_package():
    assert cppcl.CPRL is CPRL
    with pytest.raises(AttributeError, match="no attribute 'CPLR'"):
        cppcl.CPLR  # noqa: B018


def test_importing_the_package_loads_neither_numpy_nor_the_class():
    code = (
        "import cppcl, sys; print(sorted({'numpy', 'cppcl.learning.cprl'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("name", "value"), list(option_values(CPRL)))
def test_an_option_is_returned_as_it_was_given_and_copied(name, value):
    given = COMPANIONS.get((name, value), {}) | {name: value}
    model = CPRL().set_params(**given)
    assert model.get_params()[name] is value
    *group, option = name.split("__")
    assert getattr(getattr(model, *group) if group else model, option) is value
    assert list(model.get_params(deep=False)) == list(inspect.signature(CPRL).parameters)
    for again in (clone(model), CPRL(**model.options()), eval(repr(model))):
        assert again.options() == model.options()
        assert again.get_params()[name] == value
    assert CPRL().options() == CPRL().set_params(**given).set_params(**defaults(given)).options()


def defaults(names):
    return {name: CPRL().get_params()[name] for name in names}


def test_options_that_are_set_are_used_and_checked():
    model = CPRL(n_atoms=4, n_rounds=2)
    assert model.set_params(alpha=0.01, preparation__whiten=True) is model
    assert (model.alpha, model.preparation.whiten, model.n_atoms) == (0.01, True, 4)
    expected = CPRL(n_atoms=4, n_rounds=2, alpha=0.01, preparation={"whiten": True}).fit(*data())
    np.testing.assert_array_equal(
        model.fit(*data()).sketch_dictionary_, expected.sketch_dictionary_
    )
    before = model.options()
    for wrong, message in (
        ({"beta": 3.0, "alpha": -1}, "alpha=-1"),
        ({"beta": 3.0, "preparation__ridge": -1}, "ridge=-1"),
        ({"beta": 3.0, "pacing__selection": "binary"}, "regularizer='A'"),
        ({"beta": 3.0, "pacing__etta": 2}, "pacing has no option 'etta'; did you mean 'eta'"),
        ({"beta": 3.0, "pacign__eta": 2}, "CPRL has no option 'pacign'; did you mean 'pacing'"),
        ({"beta": 3.0, "pacing": {"etta": 2}}, "did you mean 'eta'"),
        ({"beta": 3.0, "alhpa": 1}, "CPRL has no option 'alhpa'; did you mean 'alpha'"),
    ):
        with pytest.raises(InputError, match=message):
            model.set_params(**wrong)
        assert model.options() == before


def test_options_are_checked_together_with_those_that_stay():
    model = CPRL(pacing={"regularizer": "A"}).set_params(pacing__selection="binary")
    with pytest.raises(InputError, match="regularizer='A'"):
        model.set_params(pacing__regularizer="B")
    model.set_params(pacing__regularizer="B", pacing__selection="relaxed")


def test_setting_options_keeps_what_was_learned():
    model = CPRL(n_atoms=4, n_rounds=2, alpha=0.01).fit(*data())
    codes = model.encode_images(data()[1])
    model.set_params(seed=3)
    np.testing.assert_array_equal(model.encode_images(data()[1]), codes)


def test_everything_that_is_learned_has_a_name_that_says_so():
    model = CPRL(n_atoms=4, n_rounds=2)
    unfitted = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
    assert not any(hasattr(model, name) for name in unfitted)
    model.fit(*data())
    public = {name for name in vars(model) if not name.startswith("_")}
    assert public - model.get_params(deep=False).keys() == {"history_"}
    assert unfitted | {"history_"} == {
        "history_",
        "n_features_in_",
        "n_atoms_",
        "right_share_",
        "soft_links_",
        "sketch_dictionary_",
        "image_dictionary_",
        "sketch_pacing_",
        "image_pacing_",
        "sketch_pacing_rounds_",
        "image_pacing_rounds_",
    }


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = CPRL(n_atoms=4, n_rounds=2, preparation={"whiten": True}).fit(*data())
    before = {name: array.tobytes() for name, array in model.to_arrays().items()}
    F, G, labels, _ = data(seed=1)
    with pytest.raises(InputError, match="all 8 rows are alike"):
        model.fit(F, np.ones_like(G), labels, labels)
    with pytest.raises(InputError, match="call fit"):
        model.from_arrays({})
    assert {name: array.tobytes() for name, array in model.to_arrays().items()} == before


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_of_a_fitted_model_encodes_alike(copied):
    model = CPRL(n_atoms=4, n_rounds=2).fit(*data())
    np.testing.assert_array_equal(
        copied(model).encode_images(data()[1]), model.encode_images(data()[1])
    )


def test_the_text_of_a_model_is_the_call_that_makes_it():
    assert repr(CPRL()) == "CPRL()"
    assert repr(CPRL(seed=3, alpha=0.01)) == "CPRL(alpha=0.01, seed=3)"
    assert repr(CPRL(beta=1)) == "CPRL(beta=1)"
    assert repr(CPRL(pacing={"eta": 1.5})) == "CPRL(pacing=Pacing(eta=1.5))"
    # A group that is given as an object is taken as it is, defaults of its own class included.
    assert repr(CPRL(preparation=Preparation(power=0.5))) == (
        "CPRL(preparation=Preparation(power=0.5))"
    )
    assert not CPRL(preparation=Preparation()).preparation.whiten
    assert CPRL(preparation={"power": 0.5}).preparation.whiten
    assert repr(CPRL(**OTHER)).startswith("CPRL(n_atoms=4, alpha=0.01, n_rounds=3,")


def test_preparation_keeps_to_the_same_conventions():
    options = {
        "center": False,
        "unit_norm": False,
        "n_components": 2,
        "whiten": True,
        "ridge": 0.5,
        "power": 0.5,
    }
    preparation = Preparation(**options).fit(data()[0])
    assert clone(preparation).get_params() == options
    with pytest.raises(NotFittedError):
        clone(preparation).transform(data()[0])
    with pytest.raises(InputError, match="ridge=-1"):
        preparation.set_params(ridge=-1)


def test_numbers_of_numpy_are_numbers():
    model = CPRL(n_atoms=np.int64(4), alpha=np.float32(0.01), coding={"center_codes": np.True_})
    assert model.get_params()["n_atoms"] == 4


def test_hints_name_options_that_exist():
    known = {name.rpartition("__")[2] for name in CPRL().get_params()}
    known |= {*Composition.option_names()}
    named = {
        name
        for folder in ("learning", "optim")
        for file in (Path(cppcl.__file__).parent / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Raise)
        for text in ast.walk(node)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
        for name in re.findall(r"(\w+)='", text.value)
    }
    assert named <= known
    assert len(named) > 5
