"""Joint dictionary learning: a pair has one code."""

from __future__ import annotations

from cppcl.baselines.dictionaries import DictionaryBaseline
from cppcl.learning.preparation import Floating
from cppcl.optim.initialization import learn_shared_codes


class JDL(DictionaryBaseline):
    """Joint dictionary learning: two dictionaries by which a pair has one and the same code.

    Minimises ``|F_s - C D_s|^2 + |F_i - C D_i|^2 + 2 alpha |C|_1`` over shared codes C and atoms
    in the unit ball.

    The options are those of `cppcl.baselines.dictionaries.DictionaryBaseline`.

    Notes
    -----
    Yang, Wright, Huang, Ma, "Image super-resolution via sparse representation", IEEE Trans. Image
    Processing 2010, section III-C, with unit-norm features in place of a weight by dimension.
    """

    def _learn_pairs(
        self, views: list[Floating], dictionaries: list[Floating]
    ) -> tuple[list[Floating], dict[str, Floating]]:
        return (
            learn_shared_codes(views, dictionaries, alpha=self.alpha, n_rounds=self.n_rounds),
            {},
        )
