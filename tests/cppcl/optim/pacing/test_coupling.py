"""The graph term of the pacing step against the dense matrix that it stands for."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from cppcl.learning.graph import Laplacian
from cppcl.optim.pacing.coupling import GraphCoupling, PrintedCoupling
from cppcl.optim.pacing.links import ClassBlocks, ListedLinks, UnlistedLinks

K, L = 6, 9
N_ATOMS = {"blocks": 20, "unlisted": 1, "listed": 20}
FORMS = {"blocks": ClassBlocks, "unlisted": UnlistedLinks, "listed": ListedLinks}


def symmetric(rng, n):
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.4), 1)
    return sparse.csr_array(W + W.T)


def graph_and_codes(form, within, normalize="mean_degree", dtype=np.float64):
    rng = np.random.default_rng(0)
    # The last sketch and the first image are linked to nothing.
    labels = [0, 1, 0, 1, 1, 3], [4, 0, 1, 1, 0, 1, 1, 0, 0]
    inner = {
        "none": None,
        "images": (None, symmetric(rng, L)),
        "both": (symmetric(rng, K), symmetric(rng, L)),
    }[within]
    options = {"within": inner, "normalize": normalize, "dtype": dtype}
    if form == "listed":
        graph = Laplacian.from_links(np.equal.outer(*labels) * rng.random((K, L)), **options)
    else:
        graph = Laplacian.from_labels(*labels, **options)
    return graph, rng.standard_normal((K + L, N_ATOMS[form])).astype(dtype)


def dense(coupling):
    return np.column_stack([coupling.apply(e) for e in np.eye(K + L)])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("within", ["none", "images", "both"])
@pytest.mark.parametrize("normalize", ["mean_degree", "sym"])
def test_coupling_is_the_trace_form_and_positive_semidefinite(form, within, normalize):
    graph, C = graph_and_codes(form, within, normalize)
    coupling = GraphCoupling(graph, C)
    assert type(coupling._cross) is FORMS[form]
    M = dense(coupling)
    expected = graph.apply(np.eye(K + L)) * (C @ C.T)
    np.testing.assert_allclose(M, expected, atol=1e-12)
    np.testing.assert_allclose(coupling.matrix().toarray(), expected, atol=1e-12)
    np.testing.assert_allclose(coupling.diagonal, np.diag(expected))
    assert np.linalg.eigvalsh(M).min() > -1e-10
    v = np.random.default_rng(1).random(K + L)
    assert v @ M @ v == pytest.approx(graph.quadratic_form(v[:, None] * C))
    sums = np.abs(M).sum(axis=1)
    assert (sums <= coupling.absolute_row_sums() + 1e-9).all()
    if form != "unlisted":
        np.testing.assert_allclose(coupling.absolute_row_sums(), sums)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("within", ["none", "images", "both"])
def test_printed_coupling_is_as_printed_twice_the_trace_form_and_indefinite(form, within):
    graph, C = graph_and_codes(form, within)
    coupling = PrintedCoupling(graph, C)
    assert type(coupling._cross) is FORMS[form]
    printed = graph.adjacency(np.eye(K + L)) * ((C[:, None] - C[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(dense(coupling), printed, atol=1e-12)
    np.testing.assert_allclose(coupling.matrix().toarray(), printed, atol=1e-12)
    assert (printed.sum(axis=1) <= coupling.absolute_row_sums() + 1e-9).all()
    assert np.linalg.eigvalsh(printed).min() < -0.1
    assert printed.sum() == pytest.approx(2 * graph.quadratic_form(C))


@pytest.mark.parametrize("form", FORMS)
def test_float32_is_kept_and_float64_variables_are_not_rounded(form):
    single = GraphCoupling(*graph_and_codes(form, "both", dtype=np.float32))
    double = GraphCoupling(*graph_and_codes(form, "both"))
    v = np.random.default_rng(1).random(K + L)
    for dtype in (np.float32, np.float64):
        product = single.apply(v.astype(dtype))
        assert product.dtype == dtype
        np.testing.assert_allclose(product, double.apply(v), rtol=1e-4, atol=1e-4)
    assert single.absolute_row_sums().dtype == np.float32


def test_memory_does_not_grow_with_the_links_of_large_classes_or_of_sparse_weights():
    rng = np.random.default_rng(0)
    n, N = 20_000, 8
    codes = rng.standard_normal((2 * n, N))
    classes = np.arange(n) % 4
    near = sparse.diags_array([np.ones(n - 1)] * 2, offsets=[1, -1])
    graph = Laplacian.from_labels(classes, classes, within=(near, None))
    tracemalloc.start()
    coupling = GraphCoupling(graph, codes)
    coupling.apply(np.ones(2 * n))
    coupling.absolute_row_sums()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert graph.n_links() == 100_000_000
    assert peak < 6 * codes.nbytes
