import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cppcl.errors import InputError
from cppcl.learning.graph import Laplacian, _draw_partners, number_labels

labels = st.lists(st.integers(0, 4), min_size=2, max_size=12)


NORMALIZATIONS = ["mean_degree", "sym", "none"]


def dense_laplacian(W, normalize, within=(None, None)):
    """Textbook Laplacian of the (K + L) x (K + L) graph with cross weights W."""
    own = [np.zeros((n, n)) if w is None else w for n, w in zip(W.shape, within, strict=True)]
    full = np.block([[own[0], W], [W.T, own[1]]])
    d = full.sum(axis=1)
    if normalize == "mean_degree":
        full, d = full / d.mean(), d / d.mean()
    if normalize == "sym":
        scale = np.where(d > 0, 1 / np.sqrt(np.where(d > 0, d, 1)), 0)
        return np.diag((d > 0).astype(float)) - scale[:, None] * full * scale
    return np.diag(d) - full


@settings(deadline=None)
@given(sketch=labels, image=labels, normalize=st.sampled_from(NORMALIZATIONS))
def test_labels_give_the_dense_laplacian(sketch, image, normalize):
    W = np.equal.outer(sketch, image).astype(float)
    if not W.any():
        with pytest.raises(InputError, match="share no value"):
            Laplacian.from_labels(sketch, image)
        return
    graph = Laplacian.from_labels(sketch, image, normalize=normalize)
    X = np.random.default_rng(0).standard_normal((sum(W.shape), 3))
    dense = dense_laplacian(W, normalize)
    np.testing.assert_allclose(graph.apply(X), dense @ X, atol=1e-12)
    np.testing.assert_allclose(graph.apply(X[:, 0]), dense @ X[:, 0], atol=1e-12)
    np.testing.assert_allclose(graph.degree, np.diag(dense), atol=1e-12)
    assert graph.quadratic_form(X) == pytest.approx(np.trace(X.T @ dense @ X))
    assert graph.n_links() == W.sum()


@settings(deadline=None)
@given(
    rows=st.integers(2, 6),
    columns=st.integers(2, 6),
    seed=st.integers(0, 99),
    normalize=st.sampled_from(NORMALIZATIONS),
)
def test_links_give_the_dense_laplacian(rows, columns, seed, normalize):
    rng = np.random.default_rng(seed)
    W = rng.random((rows, columns)) * (rng.random((rows, columns)) < 0.5)
    W[0, 0] = 0.5
    graph = Laplacian.from_links(sparse.csr_array(W), normalize=normalize)
    X = rng.standard_normal((rows + columns, 2))
    np.testing.assert_allclose(graph.apply(X), dense_laplacian(W, normalize) @ X, atol=1e-12)
    scale = W.sum() * 2 / (rows + columns) if normalize == "mean_degree" else 1
    if normalize != "sym":
        np.testing.assert_allclose(graph.cross_weights().toarray(), W / scale, atol=1e-12)


def symmetric(rng, n):
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.4), 1)
    return W + W.T


@settings(deadline=None)
@given(
    rows=st.integers(2, 6),
    columns=st.integers(2, 6),
    seed=st.integers(0, 99),
    normalize=st.sampled_from(NORMALIZATIONS),
    sides=st.sampled_from([(True, True), (True, False), (False, True)]),
)
def test_weights_within_modalities_join_the_dense_laplacian(rows, columns, seed, normalize, sides):
    rng = np.random.default_rng(seed)
    W = rng.random((rows, columns)) * (rng.random((rows, columns)) < 0.5)
    W[0, 0] = 0.5
    dense = [symmetric(rng, n) if has else None for n, has in zip(W.shape, sides, strict=True)]
    within = tuple(None if w is None else sparse.coo_array(w) for w in dense)
    graph = Laplacian.from_links(sparse.csr_array(W), within=within, normalize=normalize)
    expected = dense_laplacian(W, normalize, dense)
    X = rng.standard_normal((rows + columns, 2))
    np.testing.assert_allclose(graph.apply(X), expected @ X, atol=1e-12)
    np.testing.assert_allclose(graph.degree, np.diag(expected), atol=1e-12)
    np.testing.assert_allclose(graph.cross_degree + graph.within_degree, graph.degree)
    assert graph.quadratic_form(X) == pytest.approx(np.trace(X.T @ expected @ X), abs=1e-12)
    for side, own in enumerate((slice(0, rows), slice(rows, None))):
        other = slice(rows, None) if side == 0 else slice(0, rows)
        np.testing.assert_allclose(
            graph.cross(X[other], side), -expected[own, other] @ X[other], atol=1e-12
        )
        # Each part is a Laplacian of its own, with its own degrees on the diagonal.
        inner = graph.within(X[own], side)
        alone = np.diag(graph.within_degree[own])
        if sides[side]:
            off_diagonal = np.diag(graph.degree[own]) - expected[own, own]
            np.testing.assert_allclose(inner, off_diagonal @ X[own], atol=1e-12)
            assert np.linalg.eigvalsh(alone - off_diagonal).min() > -1e-12
        else:
            assert inner is None
            assert not alone.any()


def test_quadratic_form_by_chunks_is_that_of_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    within = (sparse.csr_array(symmetric(rng, 7)), sparse.csr_array(symmetric(rng, 5)))
    graph = Laplacian.from_labels([*"aabcabc"], [*"abbca"], within=within)
    X = rng.standard_normal((12, 3))
    monkeypatch.setattr("cppcl.learning.graph.CHUNK", 2)
    assert graph.quadratic_form(X) == pytest.approx(np.vdot(X, graph.apply(X)))
    assert graph.quadratic_form(X[:, 0]) == pytest.approx(X[:, 0] @ graph.apply(X[:, 0]))


def test_scaled_factors_and_weights_are_what_is_applied():
    rng = np.random.default_rng(0)
    within = (sparse.csr_array(symmetric(rng, 4)), None)
    before = within[0].toarray()
    graph = Laplacian.from_labels([*"aabc"], [*"abb"], within=within, normalize="sym")
    cross = (graph.left @ graph.right.T).toarray()
    np.testing.assert_allclose(cross, graph.cross(np.eye(3), 0))
    np.testing.assert_allclose(cross.T, graph.cross(np.eye(4), 1))
    np.testing.assert_allclose(graph.within_weights[0].toarray(), graph.within(np.eye(4), 0))
    assert graph.within_weights[1] is None
    np.testing.assert_array_equal(within[0].toarray(), before)


@pytest.mark.parametrize("labels", [[3, 3, 0, 7], ["p1", "p1", "p2", "p3"]])
def test_clusters_and_instances_are_labels_and_memberships_are_factors(labels):
    images = [labels[0], labels[2], labels[2]]
    hard = Laplacian.from_labels(labels, images, normalize="none")
    np.testing.assert_array_equal(
        hard.cross_weights().toarray(), np.equal.outer(labels, images).astype(float)
    )
    rng = np.random.default_rng(0)
    memberships = rng.random((4, 2)), rng.random((3, 2))
    soft = Laplacian(*map(sparse.csr_array, memberships), normalize="none")
    np.testing.assert_allclose(soft.cross_weights().toarray(), memberships[0] @ memberships[1].T)
    assert soft.n_links() >= 12


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros((2, 2)), r"within-sketch weights have shape \(2, 2\), expected \(3, 3\)"),
        (np.eye(3), "link a sample to itself"),
        (np.array([[0, 1, 0], [0.9, 0, 0], [0, 0, 0]]), "differ from their transpose by 0.1"),
        (np.array([[0, -1, 0], [-1, 0, 0], [0, 0, 0]]), "negative or non-finite"),
    ],
)
def test_bad_weights_within_a_modality_are_refused(weights, message):
    with pytest.raises(InputError, match=message):
        Laplacian.from_labels([*"aab"], [*"ab"], within=(sparse.csr_array(weights), None))


def test_weights_within_modalities_alone_link_nothing():
    with pytest.raises(InputError, match="no sketch is linked"):
        Laplacian.from_labels([*"aa"], ["b"], within=(sparse.csr_array([[0, 1.0], [1, 0]]), None))


def test_mean_degree_is_one_and_memory_is_linear():
    n = 20_000
    classes = np.arange(n) % 2
    graph = Laplacian.from_labels(classes, classes, dtype=np.float32)
    assert graph.degree.mean() == pytest.approx(1)
    assert graph.n_links() == 2 * (n // 2) ** 2
    ones = np.ones((2 * n, 1), dtype=np.float32)
    product = graph.apply(ones)
    assert product.dtype == np.float32
    assert np.abs(product).max() < 1e-4


@settings(max_examples=30, deadline=None)
@given(sketch=labels, image=labels, seed=st.integers(0, 5))
def test_sampled_pairs_are_linked_and_cover_every_linked_sample(sketch, image, seed):
    W = np.equal.outer(sketch, image)
    if not W.any():
        return
    graph = Laplacian.from_labels(sketch, image)
    rows, columns = graph.sample_pairs(np.random.default_rng(seed))
    assert W[rows, columns].all()
    assert set(rows) == set(np.flatnonzero(W.any(axis=1)))
    assert set(columns) == set(np.flatnonzero(W.any(axis=0)))
    assert len(set(zip(rows, columns, strict=True))) == len(rows)
    again = graph.sample_pairs(np.random.default_rng(seed))
    np.testing.assert_array_equal(again, [rows, columns])


def test_sampled_pairs_follow_links():
    links = sparse.csr_array(np.array([[0, 2.0, 0], [0, 0, 0], [0.5, 0, 0]]))
    graph = Laplacian.from_links(links)
    rows, columns = graph.sample_pairs(np.random.default_rng(0))
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == [(0, 1), (2, 0)]
    all_linked = Laplacian.from_links(np.ones((2, 6)))
    rows, columns = all_linked.sample_pairs(np.random.default_rng(0), n_partners=40)
    assert len(rows) == 12


def test_partners_are_drawn_uniformly():
    graph = Laplacian.from_labels([0], [0] * 4)
    drawn = _draw_partners(graph.left, graph._right_t, np.random.default_rng(0), 4000)[1]
    assert np.abs(np.bincount(drawn) - 1000).max() < 100


def test_numpy_and_python_labels_are_the_same():
    first, second = number_labels(np.array(["b", "a", "b"]), ["a", "c"])
    assert first.tolist() == [0, 1, 0]
    assert second.tolist() == [1, 2]
    first, second = number_labels(np.array([3, 5], dtype=np.int32), [5, "5"])
    assert second.tolist() == [1, 2]


@pytest.mark.parametrize("labels", [[["a"]], [float("nan")]])
def test_labels_that_cannot_be_compared_are_named(labels):
    with pytest.raises(InputError, match="of row 0 says nothing"):
        number_labels(labels)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_bad_weights_are_refused(weight):
    with pytest.raises(InputError, match="negative or non-finite"):
        Laplacian.from_links(sparse.csr_array(np.array([[1, weight]])))


def test_unknown_normalization_is_refused():
    with pytest.raises(InputError, match="normalize='rows' is not one of"):
        Laplacian.from_labels(["a"], ["a"], normalize="rows")


@pytest.mark.parametrize("with_within", [False, True])
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_correlated_directions_diagonalise_the_balanced_cross_moment(normalize, with_within):
    rng = np.random.default_rng(3)
    sketch, image = [0, 0, 0, 1, 1, 2, 3], [0, 1, 1, 2, 2, 4, 0, 1]
    F, G = rng.standard_normal((7, 5)), rng.standard_normal((8, 4))
    W = np.equal.outer(sketch, image).astype(float)
    roots = [np.sqrt(np.maximum(W.sum(axis=axis), 1)) for axis in (1, 0)]
    moment = F.T @ (W / np.outer(*roots)) @ G
    within = (sparse.csr_array(symmetric(rng, 7)), None) if with_within else None
    graph = Laplacian.from_labels(sketch, image, within=within, normalize=normalize)
    left, strengths, right = graph.correlated_directions(F, G)
    np.testing.assert_allclose(left @ left.T, np.eye(len(left)), atol=1e-10)
    np.testing.assert_allclose(right @ right.T, np.eye(len(right)), atol=1e-10)
    np.testing.assert_allclose((left.T * strengths) @ right, moment, atol=1e-10)
    assert (np.diff(strengths) <= 1e-12).all()


@pytest.mark.parametrize(("normalize", "size"), [("none", 1e300), ("sym", 1e300), ("sym", 1e-300)])
def test_weights_beyond_the_type_are_refused(normalize, size):
    with pytest.raises(InputError, match="beyond float32"):
        Laplacian.from_links(size * np.eye(3), normalize=normalize, dtype=np.float32)
