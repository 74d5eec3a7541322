"""Joint dictionary learning: a pair has one code."""

from __future__ import annotations

from cppcl.baselines.dictionaries import DictionaryBaseline
from cppcl.optim.initialization import learn_shared_codes
from cppcl.preparation import Floating


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

    def __init__(
        self,
        *,
        n_atoms: int = 100,
        alpha: float = 0.01,
        n_rounds: int = 20,
        code_ridge: float = 0.0,
        seed: int = 0,
        center: bool = True,
        unit_norm: bool = True,
        n_components: int | None = None,
        whiten: bool = False,
        whitening_ridge: float = 1e-3,
    ) -> None:
        super().__init__(
            n_atoms=n_atoms,
            alpha=alpha,
            n_rounds=n_rounds,
            code_ridge=code_ridge,
            seed=seed,
            center=center,
            unit_norm=unit_norm,
            n_components=n_components,
            whiten=whiten,
            whitening_ridge=whitening_ridge,
        )

    def _learn_pairs(
        self, views: list[Floating], dictionaries: list[Floating]
    ) -> tuple[list[Floating], dict[str, Floating]]:
        return (
            learn_shared_codes(views, dictionaries, alpha=self.alpha, n_rounds=self.n_rounds),
            {},
        )
