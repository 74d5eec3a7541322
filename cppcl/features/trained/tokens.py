"""A vision transformer of which only normalisation and some tokens of its own are learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cppcl.errors import InputError
from cppcl.features.networks.encoders import Pooling
from cppcl.features.networks.input import Preprocessing
from cppcl.features.training.lesson import Lesson
from cppcl.modality import Modality

FIRST_PROMPTS = 0.02
"""Deviation of the first prompts, as of timm's class tokens and position embeddings."""


class MirroredLesson(Lesson):
    """Gives pictures as they are, every other one mirrored."""

    def pictures(self, modality: Modality, rows: NDArray[np.int64]) -> Tensor:
        """Pictures of a batch, (n, 3, side, side) float32 in [0, 1], on the device."""
        found = torch.from_numpy(self.views[modality].maps[rows]).to(self.device).float() / 255
        mirrored = torch.from_numpy(self._rng.random(len(rows)) < 0.5).to(self.device)
        return torch.where(mirrored[:, None, None, None], found.flip(3), found)


class TunedTokens(nn.Module):
    """What is learned of a vision transformer: its LayerNorms, and prompts beside its tokens.

    The rest is no part of this module's weights and stays as it is.

    Parameters
    ----------
    model : timm's VisionTransformer
        Its LayerNorms are those of this module.
    preprocessing : Preprocessing
        Means and deviations that its input wants.
    prompts : int
        Tokens that are put beside those of the picture, after the position embedding.
    pooling : {'model', 'token', 'average'}
        As of the extractor `timm`; prompts are left out.

    Raises
    ------
    InputError
        The model is of another kind.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self, model: Any, preprocessing: Preprocessing, prompts: int, pooling: Pooling
    ) -> None:
        super().__init__()
        needed = ("patch_embed", "_pos_embed", "norm_pre", "blocks", "norm", "forward_head")
        if not all(hasattr(model, name) for name in needed) or (
            pooling == "token" and (getattr(model, "cls_token", None) is None)
        ):
            raise InputError(
                f"option network: {type(model).__name__} is no vision transformer whose tokens "
                "could be tuned; choose one, such as 'vit_small_patch14_dinov2.lvd142m'"
            )
        self._frozen, self._pooling = [model], pooling  # in a list, so that it is not registered
        self.norms = nn.ModuleList(m for m in model.modules() if isinstance(m, nn.LayerNorm))
        self.norms.requires_grad_()
        self.prompts = nn.Parameter(FIRST_PROMPTS * torch.randn(prompts, model.embed_dim))
        for name, values in (("mean", preprocessing.mean), ("deviation", preprocessing.std)):
            numbers = torch.tensor(values)[:, None, None]
            self.register_buffer(name, numbers, persistent=False)

    def forward(self, pictures: Tensor) -> Tensor:
        """Codes of pictures, (n, d), from (n, 3, side, side) in [0, 1]."""
        (model,) = self._frozen
        model.to(pictures.device)
        tokens = model.norm_pre(
            model._pos_embed(model.patch_embed((pictures - self.mean) / self.deviation))
        )
        first, n = model.num_prefix_tokens, len(self.prompts)
        prompts = self.prompts.expand(len(tokens), -1, -1)
        tokens = torch.cat([tokens[:, :first], prompts, tokens[:, first:]], dim=1)
        tokens = model.norm(model.blocks(tokens))
        tokens = torch.cat([tokens[:, :first], tokens[:, first + n :]], dim=1)
        if self._pooling == "token":
            return tokens[:, 0]
        if self._pooling == "average":
            return tokens[:, first:].mean(1)
        found: Tensor = model.forward_head(tokens, pre_logits=True)
        return found
