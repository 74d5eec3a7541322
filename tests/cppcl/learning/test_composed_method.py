"""A method on several spaces: its codes against cosines that are added by hand."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from cppcl.errors import InputError, NotFittedError
from cppcl.learning.composed_method import FEATURE_SCALE, REGRESSION_C, ComposedMethod
from cppcl.learning.preparation import unit_rows
from cppcl.methods import make_method
from cppcl.retrieval.hubness import hub_offsets

LABELS = np.arange(40) % 5
SPACES = ((4, 7), (4, 7))


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(5, 11))
    sketches, images = (centres[LABELS] + 0.6 * rng.normal(size=(40, 11)) for _ in range(2))
    return sketches, images


def composed(name: str = "class_cca", **composition):
    return make_method(name, composition={"spaces": "separate", **composition})


def cosines(method) -> np.ndarray:
    sketches, images = data(1)
    codes = method.encode_sketches(sketches), method.encode_images(images)
    return unit_rows(codes[0]) @ unit_rows(codes[1]).T


def of_parts(name: str = "class_cca") -> list[np.ndarray]:
    """Cosines of the method on each space alone, and the centred ones of all features."""
    found = []
    for part, plain in (
        (slice(0, 4), name),
        (slice(4, 11), name),
        (slice(0, 11), "centred_cosine"),
    ):
        method = make_method(plain).fit(*(F[:, part] for F in data()), LABELS, LABELS)
        sketches, images = (F[:, part] for F in data(1))
        codes = method.encode_sketches(sketches), method.encode_images(images)
        found.append(unit_rows(codes[0]) @ unit_rows(codes[1]).T)
    return found


def test_cosines_of_spaces_are_added_by_weight():
    first, second, centred = of_parts()
    method = composed(space_weights=(1, 0.25), centred_share=0.2)
    method.fit(*data(), LABELS, LABELS, spaces=SPACES)
    expected = 0.8 * (first + 0.25 * second) / 1.25 + 0.2 * centred
    np.testing.assert_allclose(cosines(method), expected, atol=1e-12)


def test_soft_links_move_codes_towards_the_classes_they_resemble():
    method = composed(soft_links=3.0, link_temperature=0.2).fit(
        *data(), LABELS, LABELS, spaces=SPACES
    )
    plain = composed().fit(*data(), LABELS, LABELS, spaces=SPACES)
    sketches, images = data()
    codes = plain.encode_sketches(sketches), plain.encode_images(images)
    own, other = (np.stack([C[g == LABELS].mean(axis=0) for g in range(5)]) for C in codes)
    query = plain.encode_sketches(data(1)[0])
    weights = np.exp(unit_rows(query) @ unit_rows(own).T / 0.2)
    weights /= weights.sum(axis=1, keepdims=True)
    expected = unit_rows(query + 3.0 * weights @ ((own + other) / 2))
    np.testing.assert_allclose(method.encode_sketches(data(1)[0]), expected, atol=1e-12)


def test_a_regression_says_to_which_classes_samples_may_belong(monkeypatch):
    monkeypatch.setattr("cppcl.baselines.logistic.TOLERANCE", 1e-9)
    options = {"soft_links": 3.0, "posterior": "regression", "space_weights": (1, 0.25)}
    method = composed(**options).fit(*data(), LABELS, LABELS, spaces=SPACES)
    plain = composed(space_weights=(1, 0.25)).fit(*data(), LABELS, LABELS, spaces=SPACES)

    def rows(modality, features):
        *codes, centred = plain.encode_spaces(modality, features)
        return np.hstack([C / np.sqrt(2) for C in codes] + [FEATURE_SCALE * centred])

    sketches, images = data()
    joint, labels = [], np.concatenate([LABELS, LABELS])
    for sign, R in ((1, rows("sketch", sketches)), (-1, rows("image", images))):
        joint.append(np.hstack([np.sqrt(0.75) * R, sign * np.sqrt(0.25) * R]))
    oracle = LogisticRegression(C=REGRESSION_C, tol=1e-8, max_iter=2000)
    oracle.fit(np.vstack(joint), labels)
    R = rows("sketch", data(1)[0])
    chances = oracle.predict_proba(np.hstack([np.sqrt(0.75) * R, np.sqrt(0.25) * R]))
    codes = plain.encode_sketches(sketches), plain.encode_images(images)
    means = [np.stack([C[g == LABELS].mean(axis=0) for g in range(5)]) for C in codes]
    expected = unit_rows(
        plain.encode_sketches(data(1)[0]) + 3.0 * chances @ ((means[0] + means[1]) / 2)
    )
    np.testing.assert_allclose(method.encode_sketches(data(1)[0]), expected, atol=1e-4)


def test_too_many_classes_for_a_regression_are_asked_by_their_means(monkeypatch):
    monkeypatch.setattr("cppcl.learning.composed_method.MOST_CLASSES", 4)
    found = [
        composed(soft_links=3.0, posterior=model).fit(*data(), LABELS, LABELS, spaces=SPACES)
        for model in ("auto", "groups", "regression")
    ]
    np.testing.assert_array_equal(cosines(found[0]), cosines(found[1]))
    assert not np.allclose(cosines(found[0]), cosines(found[2]))


def test_the_bank_is_of_training_sketches():
    method = composed(hubness="csls", n_neighbors=3).fit(*data(), LABELS, LABELS, spaces=SPACES)
    plain = composed().fit(*data(), LABELS, LABELS, spaces=SPACES)
    gallery = plain.encode_images(data(1)[1])
    offsets = hub_offsets(plain.encode_sketches(data()[0]), gallery, "csls", n_neighbors=3)
    np.testing.assert_allclose(method.encode_images(data(1)[1])[:, -2], -offsets, atol=1e-12)


@pytest.mark.parametrize("name", ["class_cca", "cprl"])
def test_what_is_stored_codes_alike(name):
    options = {"soft_links": 1.0, "posterior": "auto", "hubness": "csls", "centred_share": 0.1}
    fast = {"n_atoms": 4, "n_rounds": 2, "coding": {"code_ridge": 1.0}} if name == "cprl" else {}
    made = [
        make_method(name, **fast, composition={"spaces": "separate", **options}) for _ in range(2)
    ]
    method = made[0].fit(*data(), LABELS, LABELS, spaces=SPACES)
    again = made[1].from_arrays(method.to_arrays())
    np.testing.assert_array_equal(cosines(again), cosines(method))
    assert again.paces == method.paces
    assert again.history_.keys() == method.history_.keys()


def test_what_is_learned_is_shared_between_compositions(monkeypatch):
    fitted = composed().fit(*data(), LABELS, LABELS, spaces=SPACES)
    anew = composed(hubness="csls").fit(*data(), LABELS, LABELS, spaces=SPACES)
    shared = composed(hubness="csls")
    with monkeypatch.context() as patch:
        patch.setattr(ComposedMethod, "fit", None)
        shared.fit_like(fitted, (*data(), LABELS, LABELS), SPACES)
    np.testing.assert_array_equal(cosines(shared), cosines(anew))
    other = make_method("class_cca", ridge=0.5, composition={"spaces": "separate"})
    other.fit_like(fitted, (*data(), LABELS, LABELS), SPACES)
    assert not np.allclose(cosines(other), cosines(fitted))


@pytest.mark.parametrize(
    ("composition", "message"),
    [
        ({"space_weights": (1, 1, 1)}, "space_weights="),
        ({"space_weights": (0, 0)}, "are all 0"),
        ({"spaces": "joined", "space_weights": (1, 1)}, "spaces='separate'"),
        ({"centred_share": 1.5}, "centred_share=1.5"),
        ({"hubness": "cls"}, "hubness"),
        ({"nothing": 1}, "no option 'nothing'"),
    ],
)
def test_wrong_compositions_are_refused(composition, message):
    with pytest.raises(InputError, match=message):
        composed(**composition).fit(*data(), LABELS, LABELS, spaces=SPACES)


def test_data_that_do_not_go_with_a_composition_are_refused():
    sketches, images = data()
    with pytest.raises(InputError, match="combine as many"):
        composed().fit(sketches, images, LABELS, LABELS, spaces=((4, 7), (11,)))
    with pytest.raises(InputError, match="centred_share"):
        composed(centred_share=0.5).fit(sketches, images[:, :9], LABELS, LABELS)
    with pytest.raises(InputError, match=r"composition\.soft_links"):
        composed("cprl", soft_links=1.0).fit(sketches, images, None, None, links=np.eye(40))
    with pytest.raises(NotFittedError):
        composed().encode_images(images)
    fitted = composed().fit(sketches, images, LABELS, LABELS, spaces=SPACES)
    with pytest.raises(InputError, match="10 columns"):
        fitted.encode_images(images[:, :10])


def test_a_plain_composition_is_the_method_itself():
    assert not isinstance(
        make_method("class_cca", composition={"spaces": "joined"}), ComposedMethod
    )
