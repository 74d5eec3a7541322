"""Training of two-layer heads by InfoNCE, samples weighed or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.links import Links
from cppcl.errors import InputError
from cppcl.modality import MODALITIES
from cppcl.optim.contrastive import contrastive_loss
from cppcl.optim.devices import on_device, to_numpy
from cppcl.validation import Floating

if TYPE_CHECKING:
    from torch import Tensor

Pair = tuple[NDArray[Any], NDArray[Any]]
"""Something of the sketches and of the images."""


class HeadOptions(Protocol):
    """Options that training goes by; `cppcl.baselines.infonce.InfoNCEHeads` describes them."""

    width: int
    dimension: int
    temperature: float
    learning_rate: float
    batch_size: int
    weight_decay: float
    dropout: float
    device: str
    seed: int


@dataclass
class HeadTraining:
    """Heads of both modalities, and what training them goes on from.

    Parameters
    ----------
    options : HeadOptions
        Widths, optimiser, device and seed.
    features : pair of (n_k, m_k) arrays
        Prepared features, sketches first; scaled here to a mean square of 1.
    links : Links
        Which sketches are linked with which images.

    Attributes
    ----------
    heads : list of two lists of Tensor
        Hidden weights (m_k, width), biases (width,) and output weights (width, dimension).
    losses : list of float
        Mean loss of every epoch so far.

    Raises
    ------
    InputError
        For features of which all rows are alike.
    """

    options: HeadOptions
    features: tuple[Floating, Floating]
    links: Links
    heads: list[list[Tensor]] = field(init=False)
    losses: list[float] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        import torch

        chosen = self.options
        self._rng = np.random.default_rng(chosen.seed)
        first = [
            first_weights(F.shape[1], chosen.width, chosen.dimension, self._rng)
            for F in self.features
        ]
        if self.features[0].shape[1] == self.features[1].shape[1]:
            first[1] = [weights.copy() for weights in first[0]]
        self._scales = [
            scale_of(F, f"{modality}_features")
            for modality, F in zip(MODALITIES, self.features, strict=True)
        ]
        self._rows = [
            on_device((F * scale).astype(np.float32), chosen.device)
            for F, scale in zip(self.features, self._scales, strict=True)
        ]
        self.heads = [[on_device(weights, chosen.device) for weights in head] for head in first]
        self._drawn = torch.Generator(chosen.device).manual_seed(chosen.seed)

    def run(
        self,
        epochs: int,
        *,
        weights: Pair | None = None,
        targets: Pair | None = None,
        reconstruction: float = 0.0,
    ) -> None:
        """Take gradient steps for some epochs, by `head_loss`, from where the heads are.

        Parameters
        ----------
        epochs : int
            Passes over the pairs; the learning rate falls to zero over them.
        weights : pair of (n_k,) arrays, optional
            How much each sample counts, from 0 to 1; all fully where None. Pairs of no weight
            are left out.
        targets : pair of (n_k, dimension) arrays, optional
            What unit codes are drawn to.
        reconstruction : float, default 0
            Weight of the distance from the targets.

        Raises
        ------
        InputError
            If no pair has a weight, or the training diverges.
        """
        import torch

        chosen = self.options
        counts = weights or tuple(np.ones(len(F)) for F in self.features)
        device = chosen.device
        placed = [on_device(of.astype(np.float32), device) for of in counts]
        aims = [on_device(T.astype(np.float32), device) for T in targets or ()]
        optimizer = torch.optim.AdamW(
            [weights.requires_grad_() for head in self.heads for weights in head],
            lr=chosen.learning_rate,
            weight_decay=chosen.weight_decay,
            fused=True,
        )
        for epoch in range(epochs):
            pairs = np.stack(self.links.draw_pairs(self._rng))
            pairs = pairs[:, self._rng.permutation(pairs.shape[1])]
            pairs = pairs[:, (counts[0][pairs[0]] > 0) & (counts[1][pairs[1]] > 0)]
            if not pairs.size:
                raise InputError(
                    "no linked sketch and image both have a weight above 0, so that there is "
                    "nothing to train heads on; let pacing go on for more rounds"
                )
            self.losses.append(0.0)
            batches = np.array_split(pairs, -(-pairs.shape[1] // chosen.batch_size), axis=1)
            for number, batch in enumerate(batches):
                progress = (epoch + number / len(batches)) / epochs
                rate = chosen.learning_rate * (1 + np.cos(np.pi * progress)) / 2
                optimizer.param_groups[0]["lr"] = rate
                rows = [on_device(of_modality, device) for of_modality in batch]
                loss = head_loss(
                    [
                        self._unit_codes(F[at], head)
                        for F, at, head in zip(self._rows, rows, self.heads, strict=True)
                    ],
                    on_device(links_of_pairs(self.links, batch), device),
                    chosen.temperature,
                    weights=[of[at] for of, at in zip(placed, rows, strict=True)],
                    targets=[T[at] for T, at in zip(aims, rows, strict=False)],
                    reconstruction=reconstruction,
                )
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
                self.losses[-1] += float(loss.detach()) * batch.shape[1] / pairs.shape[1]
        if not np.isfinite(self.losses).all():
            raise InputError(
                f"training diverged in epoch {int(np.argmin(np.isfinite(self.losses)))} with "
                f"learning_rate={chosen.learning_rate!r}, temperature={chosen.temperature!r} and "
                f"weight_decay={chosen.weight_decay!r}; use a smaller learning rate"
            )

    def learned(self) -> dict[str, NDArray[Any]]:
        """Weights of both heads by name, for features that are not scaled, in their dtype."""
        dtype = np.result_type(*self.features)
        arrays: dict[str, NDArray[Any]] = {}
        for modality, head, scale in zip(MODALITIES, self.heads, self._scales, strict=True):
            U, u, W = (to_numpy(weights.detach()) for weights in head)
            arrays[f"{modality}_hidden"] = (U * scale).astype(dtype)
            arrays[f"{modality}_bias"] = u.astype(dtype)
            arrays[f"{modality}_output"] = W.astype(dtype)
        return arrays

    def _unit_codes(self, rows: Tensor, head: list[Tensor]) -> Tensor:
        import torch

        U, u, W = head
        hidden = torch.relu(torch.addmm(u, rows, U))
        dropout = self.options.dropout
        if dropout:
            drawn = torch.rand(hidden.shape, generator=self._drawn, device=hidden.device)
            hidden = hidden * (drawn >= dropout) / (1 - dropout)
        return torch.nn.functional.normalize(hidden @ W, dim=1)


def scale_of(features: Floating, name: str) -> float:
    """Factor that gives prepared features (n, m) entries whose mean square is 1.

    Raises
    ------
    InputError
        If all are zero; `name` is what it calls them.
    """
    mean_square = float(np.mean(np.square(features, dtype=np.float64)))
    if not mean_square:
        raise InputError(
            f"{name}: all {len(features)} rows are alike, so nothing tells samples apart; give "
            "features that differ"
        )
    return 1 / float(np.sqrt(mean_square))


def first_weights(
    n_features: int, width: int, dimension: int, rng: np.random.Generator
) -> list[NDArray[np.float32]]:
    """Weights (m, width) and (width, dimension) of He et al. (ICCV 2015), and a bias of zeros."""
    hidden = rng.normal(scale=(2 / n_features) ** 0.5, size=(n_features, width))
    output = rng.normal(scale=width**-0.5, size=(width, dimension))
    return [
        hidden.astype(np.float32),
        np.zeros(width, dtype=np.float32),
        output.astype(np.float32),
    ]


def links_of_pairs(links: Links, pairs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Links (b, b) of the sketches of pairs (2, b) with their images."""
    sketches, images = pairs
    weights = links.left[sketches] @ links.right[images].T
    dense: NDArray[np.float32] = weights.toarray().astype(np.float32)
    return dense


def head_loss(
    codes: list[Tensor],
    positives: Tensor,
    temperature: float,
    *,
    weights: list[Tensor],
    targets: list[Tensor],
    reconstruction: float,
) -> Tensor:
    r"""Contrastive loss and the weighted distance of codes from targets, a mean over pairs.

    The first is `cppcl.optim.contrastive.contrastive_loss`.

    The second is ``sum_p (v_p^2 |s_p - t_p|^2 + u_p^2 |i_p - r_p|^2) / 2b`` over the b pairs,
    times `reconstruction`.

    Parameters
    ----------
    codes : two (b, d) Tensors
        Unit codes of the sketches and of the images of pairs.
    positives : Tensor, (b, b)
        Weights of the links of sketches with images; no row or column is all zero.
    temperature : float
        Of the softmax.
    weights : two (b,) Tensors
        How much each sample counts, above 0.
    targets : two (b, d) Tensors
        What codes are drawn to; empty where they are drawn to nothing.
    reconstruction : float
        Weight of the distance.
    """
    sketches, images = codes
    loss = contrastive_loss(sketches, images, positives, temperature, (weights[0], weights[1]))
    if not reconstruction:
        return loss
    for Z, T, v in zip(codes, targets, weights, strict=True):
        distances = (Z - T).square().sum(dim=1)
        loss = loss + reconstruction * (v.square() @ distances) / (2 * len(Z))
    return loss
