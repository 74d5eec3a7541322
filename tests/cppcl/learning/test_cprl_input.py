"""What CPRL does with input that is not as it should be, or not as one would expect."""

import numpy as np
import pytest
from scipy import sparse

from cppcl.curriculum import ExplicitPairs
from cppcl.errors import InputError
from cppcl.learning.cprl import CPRL

K, L = 7, 9


def features(dtype=np.float32):
    """Whole numbers that every type holds exactly."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 100, (K, 6)).astype(dtype), rng.integers(0, 100, (L, 5)).astype(dtype)


LABELS = list("aabbccd"), list("abbccceef")


def fit(F=None, G=None, sketch_labels=LABELS[0], image_labels=LABELS[1], *args, **options):
    F, G = features()[0] if F is None else F, features()[1] if G is None else G
    model = CPRL(n_atoms=4, n_rounds=3, initialization={"n_initial_rounds": 2})
    return model.fit(F, G, sketch_labels, image_labels, *args, **options)


def same_bytes(one, other):
    first, second = one.to_arrays(), other.to_arrays()
    return first.keys() == second.keys() and all(
        first[name].tobytes() == second[name].tobytes() for name in first
    )


def test_the_wider_of_two_types_is_taken():
    F, G = features()
    mixed = fit(F, G.astype(np.float64))
    assert mixed.sketch_dictionary_.dtype == np.float64
    assert same_bytes(mixed, fit(*features(np.float64)))


@pytest.mark.parametrize(
    "change",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X[:, ::-1].copy()[:, ::-1],
        np.ma.masked_array,
        lambda X: np.lib.stride_tricks.as_strided(X, writeable=False),
    ],
)
def test_layout_in_memory_gives_the_same_bytes(change):
    F, G = map(change, features())
    assert same_bytes(fit(F, G), fit())
    np.testing.assert_array_equal(fit().encode_sketches(F), fit().encode_sketches(features()[0]))


def test_lists_are_taken():
    F, G = features()
    assert same_bytes(fit(F.tolist(), G.tolist()), fit(*features(np.float64)))
    np.testing.assert_array_equal(
        fit().encode_sketches([F[0].tolist()]), fit().encode_sketches(F[:1].astype(np.float64))
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.ones((K, 2, 3)), r"sketch_features .*one sample a row, got shape \(7, 2, 3\)"),
        (None, "sketch_features .*shape"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_named(wrong, message):
    with pytest.raises(InputError, match=message):
        CPRL(n_atoms=4).fit(wrong, features()[1], *LABELS)
    with pytest.raises(InputError, match=message):
        fit().encode_sketches(wrong)


@pytest.mark.parametrize("side", ["sketch", "image"])
def test_a_single_sample_does_not_train_but_is_encoded(side):
    F, G = features()
    alone = (F[:1], G, ["a"]) if side == "sketch" else (F, G[:1], LABELS[0], ["a"])
    with pytest.raises(InputError, match=f"{side}_features holds 1 sample; .* at least 2"):
        fit(*alone)
    model = fit()
    one = model.encode_sketches(F[:1]) if side == "sketch" else model.encode_images(G[:1])
    assert one.shape == (1, 4)


def test_a_row_without_direction_has_a_zero_code_and_hurts_no_other():
    """The norm of a row of zeros cannot be 1; centred, that is a row equal to the mean."""
    F, G = features()
    F[2] = 0
    plain = {"n_atoms": 4, "n_rounds": 3, "alpha": 0.01, "coding": {"soft_links": 0.0}}
    model = CPRL(**plain, preparation={"center": False}).fit(F, G, *LABELS)
    assert all(np.isfinite(array).all() for array in model.to_arrays().values())
    codes = model.encode_sketches(F)
    assert (codes[2] == 0).all()
    assert (np.delete(codes, 2, axis=0) != 0).any(axis=1).all()
    unscaled = {"whiten": False, "n_components": None, "power": 1.0}
    centred = CPRL(**plain, preparation=unscaled).fit(F, G, *LABELS)
    assert centred.encode_sketches(F)[2].any()
    assert not centred.encode_images(G.mean(axis=0, keepdims=True)).any()


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("side", ["sketch", "image"])
def test_rows_that_are_all_alike_are_refused(side, value):
    F, G = features()
    alike = np.full((K if side == "sketch" else L, 5), value, dtype=np.float32)
    given = (alike, G) if side == "sketch" else (F, alike)
    with pytest.raises(InputError, match=f"{side}_features: all . rows are alike"):
        fit(*given)


def test_a_class_of_one_modality_links_nothing():
    F, G = features()
    same = fit(F, G, [*LABELS[0][:-1], "only here"])
    assert same_bytes(same, fit())
    with pytest.raises(InputError, match="share no value"):
        fit(F, G, list("uvwxyzt"))


def test_labels_may_be_of_several_types():
    """Equal as Python compares them: 1, 1.0 and numpy's 1 are one label, '1' is another."""
    mixed = {"a": 1, "b": "1", "c": ("pair", 3), "d": 2.5, "e": frozenset({4}), "f": b"f"}
    sketches = [mixed[name] for name in LABELS[0]]
    images = [mixed[name] for name in LABELS[1]]
    assert same_bytes(fit(None, None, sketches, images), fit())
    images[0] = np.float64(1.0)
    assert same_bytes(fit(None, None, sketches, images), fit())


@pytest.mark.parametrize("kind", [np.array, tuple, lambda x: np.array(x, dtype=object)])
def test_labels_may_be_any_list(kind):
    assert same_bytes(fit(None, None, kind(LABELS[0]), kind(LABELS[1])), fit())


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (list("abc"), "sketch_labels has 3 entries for 7 rows"),
        ("aabbccd", "sketch_labels must be a list of 7 labels, got 'aabbccd'"),
        (dict.fromkeys("abcdefg"), "sketch_labels must be a list of 7 labels"),
        (set("abcdefg"), "sketch_labels must be a list of 7 labels"),
        (7, "sketch_labels must be a list of 7 labels, got 7"),
        (None, "sketch_labels is None: give the labels of both modalities, or links"),
        (np.zeros((7, 1)), r"sketch_labels must be one label a sample, .*shape \(7, 1\)"),
        ([*"aabbcc", None], "sketch_labels: label None of row 6"),
        ([*"aabbcc", float("nan")], "sketch_labels: label nan of row 6"),
        (np.array([0, 1, np.nan, 3, 4, 5, 6]), "sketch_labels: label nan of row 2"),
        ([*"aabbcc", ["d"]], r"sketch_labels: label \['d'\] of row 6"),
        (
            np.ma.masked_array(range(7), [0, 1, 0, 0, 0, 0, 0]),
            "sketch_labels: label of row 1 is masked",
        ),
    ],
)
def test_labels_that_cannot_link_are_named(labels, message):
    with pytest.raises(InputError, match=message):
        fit(None, None, labels)


def test_links_say_what_labels_say():
    """Classes, instance pairs and clusters, as labels and as affinities."""
    equal = np.equal.outer(np.array(LABELS[0]), np.array(LABELS[1]))
    F, G = features(np.float64)
    by_label = fit(F, G)
    clusters = [[ord(name) % 32 for name in of_side] for of_side in LABELS]
    assert same_bytes(fit(F, G, *clusters), by_label)
    for links in (equal, equal.astype(int).tolist(), sparse.coo_array(equal.astype(np.float32))):
        by_links = fit(F, G, links=links)
        np.testing.assert_allclose(
            by_links.sketch_pacing_, by_label.sketch_pacing_, rtol=1e-3, atol=1e-3
        )


def test_pairs_are_links_and_labels_alike():
    F, G = features(np.float64)
    pairs = np.array([[0, 3], [1, 1], [2, 0], [4, 8]])
    listed = (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1]))
    links = sparse.coo_array(listed, shape=(K, L))
    sketch_labels = [f"sketch {row}" for row in range(K)]
    image_labels = [f"image {row}" for row in range(L)]
    for sketch, image in pairs:
        sketch_labels[sketch] = image_labels[image] = f"pair {sketch}"
    # Singular vectors of the two forms of one graph may differ in sign.
    options = {"n_atoms": 4, "n_rounds": 3, "initialization": {"atom_start": "samples"}}
    one, other = (CPRL(**options, beta=0.5, printed=["unscaled_graph"]) for _ in range(2))
    one.fit(F, G, links=links)
    other.fit(F, G, sketch_labels, image_labels)
    np.testing.assert_allclose(one.sketch_dictionary_, other.sketch_dictionary_, atol=1e-9)
    np.testing.assert_allclose(one.image_pacing_, other.image_pacing_, atol=1e-9)


def test_affinities_weigh():
    F, G = features()
    equal = np.equal.outer(np.array(LABELS[0]), np.array(LABELS[1]))
    weights = equal * np.linspace(0.1, 1, K)[:, None]
    assert not same_bytes(fit(F, G, links=weights), fit(F, G, links=equal))


def changed(value, row=2, column=3):
    links = np.eye(K, L)
    links[row, column] = value
    return links


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.coo_matrix])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_wrong_affinity_is_named_with_its_place(value, kind):
    message = rf"links\[2, 3\]={value} must be finite and not negative"
    with pytest.raises(InputError, match=message):
        fit(links=kind(changed(value)))


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (np.eye(L, K), r"links has shape \(9, 7\), but there are 7 sketches and 9 images"),
        (np.ones(K), r"links has shape \(7,\)"),
        (np.eye(K, L) * 1j, "links must be real numbers, got complex128"),
        (np.full((K, L), "a"), "links must be real numbers"),
        (np.ma.masked_equal(np.eye(K, L), 1), "links holds masked values"),
        (np.zeros((K, L)), "no sketch is linked to any image"),
        ([[1, 0], [1]], "links is no matrix"),
    ],
)
def test_links_that_cannot_be_used_are_named(links, message):
    with pytest.raises(InputError, match=message):
        fit(links=links)


def test_curricula_of_another_size_are_named():
    pairs = ExplicitPairs(np.array([[0, 1]]), K)
    with pytest.raises(InputError, match=r"image_curriculum is over 7 samples, .* has 9 rows"):
        fit(None, None, *LABELS, None, pairs)


@pytest.mark.parametrize("made", ["requires_grad", "bfloat16"])
def test_tensors_that_numpy_cannot_read_are_named_with_a_mend(made):
    import torch

    tensor = torch.tensor(features()[0])
    tensor = tensor.requires_grad_() if made == "requires_grad" else tensor.bfloat16()
    with pytest.raises(InputError, match=r"sketch_features: a Tensor .*\.detach\(\)\.float\(\)"):
        fit(tensor)
    fit(tensor.detach().float().cpu().numpy())


def test_a_seed_may_have_any_number_of_digits():
    assert CPRL(seed=2**200).seed == 2**200
