import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from cppcl.baselines.links import _draw_partners, class_links, given_links
from cppcl.errors import InputError

labels = st.lists(st.integers(0, 5), min_size=1, max_size=12)


def dense(links):
    return (links.left @ links.right.T).toarray()


@given(labels, labels, st.integers(0, 9))
def test_drawn_pairs_are_linked_and_reach_every_linked_sample(sketch_labels, image_labels, seed):
    if not set(sketch_labels) & set(image_labels):
        sketch_labels = [*sketch_labels, image_labels[0]]
    for links in (
        class_links(sketch_labels, image_labels),
        given_links(
            np.equal.outer(sketch_labels, image_labels), len(sketch_labels), len(image_labels)
        ),
    ):
        affinity = dense(links)
        sketches, images = links.draw_pairs(np.random.default_rng(seed))
        assert (affinity[sketches, images] > 0).all()
        assert len(set(zip(sketches, images, strict=True))) == len(sketches)
        assert set(sketches) == set(np.flatnonzero(affinity.any(axis=1)))
        assert set(images) == set(np.flatnonzero(affinity.any(axis=0)))
        again = links.draw_pairs(np.random.default_rng(seed))
        np.testing.assert_array_equal(again, (sketches, images))


def test_pairs_are_drawn_as_they_are_where_partners_are_single():
    order = np.random.default_rng(0).permutation(30)
    sketches, images = class_links(range(30), order).draw_pairs(np.random.default_rng(1))
    np.testing.assert_array_equal(sketches, np.arange(30))
    np.testing.assert_array_equal(images, np.argsort(order))


def test_partners_are_drawn_in_proportion_to_their_links():
    def shares(links):
        rows, partners = _draw_partners(links.left, links.right, np.random.default_rng(2))
        np.testing.assert_array_equal(rows, np.arange(4000))
        return np.bincount(partners, minlength=4) / 4000

    affinity = np.tile([1.0, 2.0, 0.0, 5.0], (4000, 1))
    np.testing.assert_allclose(shares(given_links(affinity, 4000, 4)), affinity[0] / 8, atol=0.03)
    # Class links weigh images alike, whatever the class weighs.
    of_class = class_links([7] * 4000, [7, 7, 1, 7], class_weight="equal")
    np.testing.assert_allclose(shares(of_class), [1 / 3, 1 / 3, 0, 1 / 3], atol=0.03)


@pytest.mark.parametrize(
    ("class_weight", "weights"),
    [("links", [6.0, 1.0]), ("samples", [6**0.5, 1.0]), ("equal", [1.0, 1.0])],
)
def test_means_of_contents_under_labels(class_weight, weights):
    rng = np.random.default_rng(3)
    sketches, images = rng.normal(size=(5, 3)), rng.normal(size=(4, 2))
    links = class_links(list("aabcb"), list("acaa"), class_weight=class_weight)
    found = links.content_means(sketches, images)
    np.testing.assert_allclose(found[0], weights)
    np.testing.assert_allclose(found[1], [sketches[:2].mean(axis=0), sketches[3]])
    np.testing.assert_allclose(found[2], [images[[0, 2, 3]].mean(axis=0), images[1]])


def test_means_of_contents_under_given_links():
    sketches, images = np.diag([1.0, 2.0, 3.0]), np.eye(3)
    affinity = sparse.csr_array([[1.0, 0.0, 0.0], [3.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    weights, of_sketches, of_images = given_links(affinity, 3, 3).content_means(sketches, images)
    np.testing.assert_allclose(weights, [4.0, 2.0])
    np.testing.assert_allclose(of_sketches, [[0.25, 1.5, 0.0], [0.0, 2.0, 0.0]])
    np.testing.assert_allclose(of_images, images[[0, 2]])


def test_links_of_the_wrong_shape_are_refused():
    with pytest.raises(InputError, match=r"links has shape \(2, 2\)"):
        given_links(np.eye(2), 2, 3)
