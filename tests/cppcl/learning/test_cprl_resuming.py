"""Rounds that a callback sees, and training that goes on from the state of one."""

import io

import numpy as np
import pytest

from cppcl.curriculum import ExplicitPairs
from cppcl.errors import InputError, ResumeError
from cppcl.learning.cprl import CPRL
from tests.nested import nested

PAIRS = ExplicitPairs(np.array([[0, 1], [2, 3], [5, 4]]), 12)
N_ROUNDS = 14
"""Atoms are replaced, by draws, up to ten rounds before the last."""

MODELS = {
    "B": {},
    "A": {"regularizer": "A", "gamma0": 0.2},
    "unpaced": {"regularizer": "none"},
    "ending early": {"gamma0": 1.0, "eta": 4.0},
    "binary": {"regularizer": "A", "selection": "binary"},
    "centred codes": {"center_codes": True, "whiten": True},
    "gradient": {"code_solver": "gradient", "printed": ["l1"]},
}


def data(dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(12) % 5
    F, G = rng.standard_normal((12, 9)), rng.standard_normal((12, 7))
    return F.astype(dtype), G.astype(dtype), labels, labels, PAIRS


def make(**options):
    return CPRL(
        **nested(**{"n_atoms": 30, "alpha": 0.05, "n_rounds": N_ROUNDS, "eta": 1.1} | options)
    )


def stored(arrays):
    """Arrays as they come back from a file."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as found:
        return dict(found)


def contents(arrays):
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_goes_on_to_the_same_bytes_from_any_round(name, dtype):
    states = []
    whole = make(**MODELS[name]).fit(*data(dtype), callback=lambda r: states.append(r.to_arrays()))
    files = [stored(state) for state in states]
    expected = contents(whole.to_arrays())
    assert len(states) == len(whole.history_["objective"])
    assert (len(states) < N_ROUNDS) == (name == "ending early")
    for done in (1, len(files) // 2, len(files) - 2, len(files)):
        numbers = []
        resumed = make(**MODELS[name])
        resumed.fit(
            *data(dtype),
            callback=lambda r, numbers=numbers: numbers.append(r.number),
            resume_from=files[done - 1],
        )
        assert numbers == list(range(done + 1, len(files) + 1))
        assert contents(resumed.to_arrays()) == expected
    # A state that is kept is not changed by what follows.
    for state, file in zip(states, files, strict=True):
        assert contents(state) == contents(file)


@pytest.mark.parametrize("name", ["B", "unpaced", "binary"])
def test_pacing_variables_of_every_round_are_kept(name):
    model = make(**MODELS[name]).fit(*data())
    for side, n in (("sketch", 12), ("image", 12)):
        rounds = getattr(model, f"{side}_pacing_rounds_")
        assert rounds.dtype == np.float32
        assert rounds.shape == (len(model.history_["gamma"]), n)
        np.testing.assert_allclose(
            rounds.mean(axis=1), model.history_[f"{side}_mean_v"], rtol=1e-6, atol=1e-7
        )
        np.testing.assert_allclose(
            rounds.std(axis=1), model.history_[f"{side}_sd_v"], rtol=1e-5, atol=1e-6
        )
        np.testing.assert_array_equal(
            rounds[-1], getattr(model, f"{side}_pacing_").astype(np.float32)
        )


def test_draws_go_on_where_they_were():
    """Unused atoms are replaced by draws after the round that is resumed from."""
    arrays = make().fit(*data()).to_arrays()
    for side in ("sketch", "image"):
        arrays[f"{side}_dictionary"] = arrays[f"{side}_dictionary"].copy()
        arrays[f"{side}_dictionary"][:8] = 0
    start = make().from_arrays(arrays)
    options = {"regularizer": "none"}
    states = []
    whole = make(**options)
    whole.fit(*data(), start=start, callback=lambda r: states.append(stored(r.to_arrays())))
    assert len({state["rng"].tobytes() for state in states[1:]}) > 1
    resumed = make(**options).fit(*data(), start=start, resume_from=states[1])
    assert contents(resumed.to_arrays()) == contents(whole.to_arrays())


def test_rounds_are_told_as_they_enter_the_history():
    rounds = []
    model = make(n_rounds=4).fit(*data(), callback=rounds.append)
    assert [r.number for r in rounds] == [1, 2, 3, 4]
    assert {r.n_rounds for r in rounds} == {4}
    for name, column in model.history_.items():
        np.testing.assert_array_equal([r.values[name] for r in rounds], column)
    np.testing.assert_array_equal([r.objective for r in rounds], model.history_["objective"])
    np.testing.assert_array_equal([r.gamma for r in rounds], model.history_["gamma"])
    means = (model.history_["sketch_mean_v"] + model.history_["image_mean_v"]) / 2
    np.testing.assert_allclose([r.mean_v for r in rounds], means)


def test_a_callback_changes_nothing():
    told = make(n_rounds=4).fit(*data(), callback=lambda r: r.to_arrays())
    assert contents(told.to_arrays()) == contents(make(n_rounds=4).fit(*data()).to_arrays())


def test_what_a_callback_raises_ends_training_and_leaves_the_model():
    kept = {}

    def stop(r):
        kept.update(stored(r.to_arrays()))
        if r.number == 2:
            raise KeyboardInterrupt

    model = make(n_rounds=4)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data(), callback=stop)
    with pytest.raises(InputError, match="call fit"):
        model.to_arrays()
    model.fit(*data(), resume_from=kept)
    assert contents(model.to_arrays()) == contents(make(n_rounds=4).fit(*data()).to_arrays())


@pytest.fixture(scope="module")
def state():
    states = []
    make(n_rounds=3).fit(*data(), callback=lambda r: states.append(stored(r.to_arrays())))
    return states[0]


@pytest.mark.parametrize(
    "other",
    [
        lambda m, d: (m.set_params(alpha=0.06), d),
        lambda m, d: (m.set_params(seed=1), d),
        lambda m, d: (m.set_params(n_rounds=4), d),
        lambda m, d: (m, data(seed=1)),
        lambda m, d: (m, data(np.float32)),
        lambda m, d: (m, (*d[:2], np.arange(12) % 4, *d[3:])),
        lambda m, d: (m, d[:4]),
        lambda m, d: (m, (*d[:4], None, PAIRS)),
        lambda m, d: (m, (*d[:4], ExplicitPairs(PAIRS.pairs[:, ::-1], 12))),
        lambda m, d: (m, (*d[:4], PAIRS, None, np.eye(12))),
    ],
)
def test_the_state_of_another_training_is_refused(state, other):
    model, given = other(make(n_rounds=3), data())
    with pytest.raises(ResumeError, match="resume_from is of a training with other"):
        model.fit(*given, resume_from=state)


def test_what_is_no_state_is_refused(state):
    model = make(n_rounds=3).fit(*data())
    with pytest.raises(ResumeError, match="resume_from holds nothing"):
        make(n_rounds=3).fit(*data(), resume_from={})
    with pytest.raises(ResumeError, match="resume_from is a list"):
        make(n_rounds=3).fit(*data(), resume_from=[1])
    with pytest.raises(ResumeError, match="no fingerprint"):
        make(n_rounds=3).fit(*data(), resume_from=model.to_arrays())
    incomplete = {name: array for name, array in state.items() if name != "codes"}
    with pytest.raises(ResumeError, match="codes of shape None"):
        make(n_rounds=3).fit(*data(), resume_from=incomplete)
    for name in ("gamma", "rng", "pacing_rounds"):
        incomplete = {key: array for key, array in state.items() if key != name}
        with pytest.raises(ResumeError, match=f"cannot be read: .*{name}"):
            make(n_rounds=3).fit(*data(), resume_from=incomplete)
    with pytest.raises(ResumeError, match="cannot be read"):
        make(n_rounds=3).fit(*data(), resume_from=state | {"rng": state["rng"][:9]})


def test_a_fitted_model_is_a_start():
    coarse = make(alpha=0.3, n_rounds=3).fit(*data())
    warm = make(n_rounds=3).fit(*data(), start=coarse)
    cold = make(n_rounds=3).fit(*data())
    assert not np.array_equal(warm.sketch_dictionary_, cold.sketch_dictionary_)
    again = make(n_rounds=3).fit(*data(), start=coarse)
    assert contents(again.to_arrays()) == contents(warm.to_arrays())
    # What is started from is what initialisation would have given.
    plain = {"whiten": False, "beta": 1.0, "atom_start": "samples"}
    started = make(n_rounds=3, n_initial_rounds=0, **plain)
    onward = make(n_rounds=1, **plain).fit(*data(), start=started.fit(*data()))
    further = started.history_["reconstruction_objective"][-1]
    assert onward.history_["reconstruction_objective"][0] < 1.2 * further
    states = []
    make(n_rounds=3).fit(*data(), start=coarse, callback=lambda r: states.append(r.to_arrays()))
    resumed = make(n_rounds=3).fit(*data(), start=coarse, resume_from=states[0])
    assert contents(resumed.to_arrays()) == contents(warm.to_arrays())
    with pytest.raises(ResumeError, match="other samples"):
        make(n_rounds=3).fit(*data(), resume_from=states[0])


def test_a_start_that_does_not_fit_is_refused():
    start = make(n_rounds=1).fit(*data())
    with pytest.raises(InputError, match="start has n_atoms=30, but this model n_atoms=20"):
        make(n_atoms=20).fit(*data(), start=start)
    with pytest.raises(InputError, match="start has whiten=True, but this model whiten=False"):
        make(whiten=False).fit(*data(), start=start)
    F, G, *rest = data()
    with pytest.raises(InputError, match=r"start has sketch atoms of 9 entries.* have 7 columns"):
        make().fit(G, F, *rest, start=start)
    with pytest.raises(InputError, match="call fit"):
        make().fit(*data(), start=make())


@pytest.mark.parametrize("name", ["gamma", "rounds_selected", "finished", "history_gamma"])
def test_a_mangled_state_is_refused(name):
    states = []
    make(n_rounds=2).fit(*data(), callback=lambda r: states.append(r.to_arrays()))
    with pytest.raises(ResumeError, match="cannot be read"):
        make(n_rounds=2).fit(*data(), resume_from={**states[0], name: 3})
