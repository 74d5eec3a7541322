import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors

from cppcl.errors import InputError
from cppcl.retrieval import exact
from cppcl.retrieval.exact import METRICS, nearest, rank_gallery, zero_codes


def codes(n, width=7, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, width)).astype(dtype)


def overlap(query, code):
    """Intersection of the positive parts, and of the negative parts."""
    return sum(
        np.minimum(np.maximum(sign * query, 0), np.maximum(sign * code, 0)).sum()
        for sign in (1, -1)
    )


def full_ranking(queries, gallery, **options):
    order = np.full((len(queries), len(gallery)), -1)
    for block, rows in rank_gallery(queries, gallery, **options):
        order[block] = rows
    return order


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("chunk", [1, 3, 50, 1000])
def test_nearest_equals_scikit_learn(metric, chunk):
    queries, gallery = codes(20), codes(150, seed=1)
    distance = {
        "cosine": "cosine",
        "l2": "euclidean",
        "intersection": lambda query, code: -overlap(query, code),
    }[metric]
    model = NearestNeighbors(n_neighbors=9, algorithm="brute", metric=distance).fit(gallery)
    distances, expected = model.kneighbors(queries)
    indices, similarities = nearest(queries, gallery, 9, metric=metric, chunk=chunk)
    assert np.array_equal(indices, expected)
    np.testing.assert_allclose(
        similarities, 1 - distances if metric == "cosine" else -distances, atol=1e-12
    )


def test_more_queries_than_one_block():
    queries, gallery = codes(600), codes(40, seed=1)
    indices, _ = nearest(queries, gallery, 1)
    assert np.array_equal(indices[:, 0], cosine_similarity(queries, gallery).argmax(axis=1))


@pytest.mark.parametrize("metric", METRICS)
def test_ranking_starts_with_the_nearest(metric):
    # Histograms, as other codes often tie in the intersection.
    shares = np.abs(codes(110)) / np.abs(codes(110)).sum(axis=1, keepdims=True)
    queries, gallery = np.split(shares, [30])
    order = full_ranking(queries, gallery, metric=metric, chunk=13)
    assert np.array_equal(order, nearest(queries, gallery, 80, metric=metric, chunk=7)[0])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_result_types(metric, dtype):
    indices, similarities = nearest(codes(3, dtype=dtype), codes(9, dtype=dtype), 2, metric=metric)
    assert (indices.dtype, similarities.dtype) == (np.int64, dtype)
    assert nearest([[1, 0]], [[1, 0], [0, 1]], 1, metric=metric)[1].dtype == np.float64


def test_l2_does_not_cancel():
    # Distances of 1e-6 at norm 1e4: ||x||^2 - 2xy + ||y||^2 has an error of about 1e-8, squared
    # distances are 1e-12.
    gallery = 1e4 + np.arange(40)[::-1, None] * 1e-6 * np.ones(4)
    query = np.full((1, 4), 1e4)
    indices, similarities = nearest(query, gallery, 40, metric="l2", chunk=11)
    assert np.array_equal(indices[0], np.arange(40)[::-1])
    np.testing.assert_allclose(similarities[0], -np.arange(40) * 2e-6, rtol=1e-4, atol=1e-11)
    assert np.array_equal(full_ranking(query, gallery, metric="l2")[0], indices[0])
    # The nearest come last, when k candidates of earlier blocks are at hand already.
    few, _ = nearest(query, gallery, 5, metric="l2", chunk=11)
    assert np.array_equal(few[0], indices[0, :5])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("chunk", [1, 4, 7, 100])
def test_ties_keep_the_order_of_the_gallery(metric, chunk):
    distinct = codes(5, width=33, seed=3)
    gallery = distinct[np.random.default_rng(0).integers(0, 5, 90)]
    indices, similarities = nearest(codes(12, width=33), gallery, 60, metric=metric, chunk=chunk)
    steps, falls = np.diff(indices, axis=1), np.diff(similarities, axis=1)
    assert (falls <= 0).all()
    assert (steps[falls == 0] > 0).all()
    assert (falls < 0).sum(axis=1).max() <= 4


def test_zero_codes_rank_last_and_in_order():
    gallery = np.vstack([np.zeros((2, 3)), -np.eye(3), np.zeros((1, 3))])
    query = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    indices, similarities = nearest(query, gallery, 6, chunk=2)
    assert indices.tolist() == [[2, 3, 4, 0, 1, 5], [0, 1, 2, 3, 4, 5]]
    assert np.isneginf(similarities[0, 3:]).all()
    assert np.isneginf(similarities[1]).all()
    assert set(full_ranking(query, gallery)[0, 3:]) == {0, 1, 5}
    assert zero_codes(gallery).tolist() == [True, True, False, False, False, True]


def test_extreme_lengths_do_not_change_the_cosine():
    query, gallery = codes(5), codes(30, seed=1)
    scale = 10.0 ** np.linspace(-140, 140, 30)[:, None]
    assert np.array_equal(nearest(query, gallery, 30)[0], nearest(query, gallery * scale, 30)[0])


@pytest.mark.parametrize("metric", METRICS)
def test_views_in_any_layout(metric):
    queries, gallery = codes(20, width=14), codes(60, width=14, seed=1)
    expected = nearest(queries[::2, ::2].copy(), gallery[::-3, ::2].copy(), 5, metric=metric)
    views = nearest(queries[::2, ::2], gallery[::-3, ::2], 5, metric=metric)
    columns = nearest(
        np.asfortranarray(queries[::2, ::2]),
        np.asfortranarray(gallery[::-3, ::2]),
        5,
        metric=metric,
    )
    for result in (views, columns):
        assert np.array_equal(result[0], expected[0])
        assert np.array_equal(result[1], expected[1])


def test_shuffle_decides_ties_alike_for_all_queries():
    gallery = np.ones((50, 3))
    orders = full_ranking(codes(4, width=3), gallery, seed=5)
    assert len(np.unique(orders, axis=0)) == 1
    assert np.array_equal(np.sort(orders[0]), np.arange(50))
    assert not np.array_equal(orders[0], np.arange(50))
    assert np.array_equal(orders, full_ranking(codes(4, width=3), gallery, seed=5))
    assert not np.array_equal(orders, full_ranking(codes(4, width=3), gallery, seed=6))


def test_codes_of_equal_sums_are_still_told_apart(monkeypatch):
    gallery, queries = codes(40, 5, seed=1), codes(3, 5, seed=2)
    gallery[20:30] = gallery[:10]
    expected = full_ranking(queries, gallery)
    monkeypatch.setattr(exact, "_bit_sums", lambda rows: np.zeros(len(rows), np.uint64))
    assert np.array_equal(full_ranking(queries, gallery, chunk=7), expected)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("chunk", [1, 37, 1000])
def test_equal_codes_tie_exactly_in_the_ranking(metric, chunk):
    # 400 entries and positions all over the blocks: a product would round some of them apart.
    distinct = codes(3, width=401, seed=3)
    which = np.random.default_rng(0).integers(0, 3, 200)
    shuffle = np.random.default_rng(9).permutation(200)
    orders = full_ranking(codes(6, width=401), distinct[which], metric=metric, seed=9, chunk=chunk)
    for order in orders:
        for same in range(3):
            expected = shuffle[which[shuffle] == same]
            assert np.array_equal(order[which[order] == same], expected)


@pytest.mark.parametrize("n_columns", [1, 2047, 2049, 5000])
def test_intersection_of_long_codes(n_columns):
    # 5000 and 2049 columns are more than one tile, 20 queries more than one tile of rows.
    queries, gallery = np.split(np.abs(codes(53, n_columns)), [20])
    expected = np.array([[np.minimum(q, g).sum() for g in gallery] for q in queries])
    order = full_ranking(queries, gallery, metric="intersection", chunk=11)
    ranked = np.take_along_axis(expected, order, axis=1)
    assert (np.diff(ranked, axis=1) < 1e-9).all()
    _, similarities = nearest(queries, gallery, 33, metric="intersection")
    np.testing.assert_allclose(similarities, -np.sort(-expected, axis=1), rtol=1e-12)


def test_codes_without_overlap_tie():
    gallery = np.repeat(np.eye(3), 20, axis=0)
    order = full_ranking([[0.3, 0.0, 0.0]], gallery, metric="intersection", seed=4)[0]
    shuffle = np.random.default_rng(4).permutation(60)
    assert order.tolist() == [*shuffle[shuffle < 20], *shuffle[shuffle >= 20]]


@pytest.mark.parametrize("seed", range(10))
def test_signed_zeros_are_equal_codes(seed):
    gallery = np.tile(codes(1, 401, seed), (200, 1))
    gallery[:36, :50], gallery[36:, :50] = 0.0, -0.0  # row 36 is at the edge of a block
    orders = full_ranking(codes(6, 401, seed + 1), gallery, seed=2, chunk=37)
    assert (orders == np.random.default_rng(2).permutation(200)).all()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 30),
    chunk=st.integers(1, 30),
    metric=st.sampled_from(METRICS),
)
def test_nearest_equals_brute_force_on_tied_sparse_codes(seed, k, chunk, metric):
    random = np.random.default_rng(seed)
    queries, gallery = (
        random.integers(-1, 2, (n, 4)) * (random.random((n, 4)) < 0.5) for n in (6, 25)
    )
    indices, _ = nearest(queries, gallery, k, metric=metric, chunk=chunk)
    for query, found in zip(queries, indices, strict=True):
        if metric == "l2":  # small integers: exact
            key = np.square(query - gallery).sum(axis=1).astype(float)
        elif metric == "intersection":
            key = [-overlap(query, code) for code in gallery]
        else:  # sign(cos) cos^2 of |query|^2 is exact in rationals of small integers
            dot, size = gallery @ query, np.square(gallery).sum(axis=1)
            key = -np.sign(dot) * dot**2 / np.maximum(size, 1)
            key = np.where((size == 0) | (not query.any()), np.inf, key)
        assert found.tolist() == np.argsort(key, kind="stable")[:k].tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_bad_values_name_the_row(bad):
    broken = codes(5000)
    broken[4321, 2] = bad
    with pytest.raises(InputError, match=r"gallery_codes row 4321 holds (nan|inf|1e\+200)"):
        nearest(codes(2), broken, 1)
    with pytest.raises(InputError, match="query_codes row 4321"):
        next(rank_gallery(broken, codes(2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gallery_codes": np.empty((0, 7))}, "gallery_codes are empty"),
        ({"gallery_codes": codes(3, width=6)}, "have 7 entries and gallery_codes 6"),
        ({"query_codes": np.ones(7)}, "query_codes have shape"),
        ({"query_codes": np.ones((2, 0))}, "query_codes have shape"),
        ({"query_codes": np.full((2, 7), "a")}, "query_codes have shape"),
        ({"k": 0}, "k=0 must be a whole number"),
        ({"metric": "manhattan"}, "metric='manhattan' is not one of"),
        ({"chunk": 0}, "chunk=0 must be"),
    ],
)
def test_wrong_use(arguments, message):
    good = {"query_codes": codes(2), "gallery_codes": codes(3), "k": 1}
    with pytest.raises(InputError, match=message):
        nearest(**good | arguments)


def test_no_queries():
    indices, similarities = nearest(np.empty((0, 7)), codes(3), 2)
    assert indices.shape == similarities.shape == (0, 2)
    assert list(rank_gallery(np.empty((0, 7)), codes(3))) == []


def peak(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("metric", METRICS)
def test_memory_of_nearest_does_not_grow_with_the_gallery(metric):
    queries = codes(40, width=64, dtype=np.float32)
    small, large = codes(4000, 64, 1, np.float32), codes(40_000, 64, 1, np.float32)
    few, many = (
        peak(lambda g=gallery: nearest(queries, g, 10, metric=metric, chunk=1000))
        for gallery in (small, large)
    )
    assert many < 1.3 * few
    assert many < 0.6 * large.nbytes


@pytest.mark.parametrize("metric", METRICS)
def test_blocks_of_long_codes_are_small(metric, monkeypatch):
    queries, gallery = codes(60, 4000, dtype=np.float32), codes(900, 4000, 1, np.float32)
    ranked, found = full_ranking(queries, gallery, metric=metric), nearest(queries, gallery, 5)
    monkeypatch.setattr("cppcl.retrieval.exact._BLOCK_ENTRIES", 40_000)
    assert peak(lambda: full_ranking(queries, gallery, metric=metric)) < 0.4 * gallery.nbytes
    assert peak(lambda: nearest(queries, gallery, 5, metric=metric)) < 0.4 * gallery.nbytes
    assert np.array_equal(full_ranking(queries, gallery, metric=metric), ranked)
    assert np.array_equal(nearest(queries, gallery, 5)[0], found[0])


def test_memory_of_the_ranking_does_not_grow_with_the_queries(monkeypatch):
    monkeypatch.setattr("cppcl.retrieval.exact._RANKED_SCORES", 20_000)
    gallery = codes(2000, dtype=np.float32)

    def run(n):
        for _ in rank_gallery(codes(n, dtype=np.float32), gallery, chunk=500):
            pass

    few, many = peak(lambda: run(20)), peak(lambda: run(400))
    assert many < 1.3 * few
    assert many < 0.5 * 400 * 2000 * 8
