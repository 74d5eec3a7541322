"""Encoders of timm and open_clip as extractors of their own, prepared as their packages do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.networks.cnn import Cnn
from cppcl.features.networks.encoders import Pooling
from cppcl.features.networks.input import Framing
from cppcl.features.networks.loading import NetworkNode, find_node
from cppcl.features.networks.text_towers import words_of_clip
from cppcl.validation import check_choice, check_number


@dataclass(frozen=True, kw_only=True)
class TimmEncoder(Cnn):
    """Image encoder of timm, by its name there; by default DINOv2-S.

    Options that are not named here are those of `cnn`.

    Parameters
    ----------
    network : str
        A model of timm, such as 'vit_small_patch14_dinov2.lvd142m' (384 values).
    framing : {'crop', 'pad'}
        'crop': pictures are resized, cropped and normalised as timm does for the model. 'pad':
        the whole picture, on a white square.
    pooling : {'model', 'token', 'average'}
        'model': as the model pools before its classifier. 'token': the class token. 'average':
        the mean over places.
    side : int or None
        Side of the input in pixels, where it is not the model's own: 224 takes a seventh of the
        time of DINOv2's 518. Position embeddings are interpolated as timm does.
    """

    name: ClassVar[str] = "timm"
    version: ClassVar[int] = 1

    network: str = "vit_small_patch14_dinov2.lvd142m"
    framing: Framing = "crop"
    pooling: Pooling = "model"
    side: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("option pooling", self.pooling, Pooling)
        if self.pooling != "model" and self._target.node is not None:
            raise InputError(
                f"option pooling={self.pooling!r} beside node={self._target.node!r}: what a node "
                "gives is averaged over places; leave one of them out"
            )
        if self.side is not None:
            check_number("option side", self.side, least=1, whole=True)

    @property
    def _target(self) -> NetworkNode:
        found = named_in("timm", self.network, self.node)
        return replace(found, pooling=self.pooling, side=self.side)

    def parameters(self) -> dict[str, Any]:
        """Every option as it takes effect; the weights are named by their content."""
        return super().parameters() | {"network": self._target.network.partition("/")[2]}


@dataclass(frozen=True, kw_only=True)
class OpenClipEncoder(Cnn):
    """Image tower of a model of open_clip, such as CLIP and SigLIP, in the space of its words.

    Options that are not named here are those of `cnn`. The model pools by its class token or by
    attention, and projects into the space that pictures and words share.

    Parameters
    ----------
    network : str
        A model of open_clip, such as 'ViT-B-32' (512 values) or 'ViT-B-16-SigLIP' (768).
    tag : str or None
        Which of its published weights, such as 'openai' or 'webli': they settle means, deviations,
        how pictures are resized, and which file the package's cache has. None for weights of your
        own, with what open_clip takes by default.
    framing : {'crop', 'pad'}
        'crop': pictures are resized, cropped and normalised as open_clip does for the weights.
        'pad': the whole picture, on a white square.
    """

    name: ClassVar[str] = "open_clip"
    version: ClassVar[int] = 1

    network: str = "ViT-B-32"
    tag: str | None = "openai"
    framing: Framing = "crop"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tag is not None and not (isinstance(self.tag, str) and self.tag):
            raise InputError(f"option tag={self.tag!r} must be the name of published weights")

    @property
    def takes_words(self) -> bool:
        """True unless features are of a node within the tower, or reduced."""
        return self._target.node is None and self.n_components is None

    def describe_words(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Codes of texts by the model's text tower, (n, dimension) float32, on the CPU.

        Raises
        ------
        DataUnavailableError
            The weights, or what the model divides words by, are not on this machine.
        InputError
            The weights have no text tower, or features are of a node or reduced.
        """
        if not self.takes_words:
            raise InputError(
                "option node or n_components: words are described in the space of the whole "
                "image tower; leave both out"
            )
        path = self._weights_path
        assert path is not None
        return words_of_clip(self.network, self.tag, path, texts)

    @property
    def _target(self) -> NetworkNode:
        return replace(named_in("open_clip", self.network, self.node), tag=self.tag)

    def parameters(self) -> dict[str, Any]:
        """Every option as it takes effect; the weights are named by their content."""
        return super().parameters() | {"network": self._target.network.partition("/")[2]}


def named_in(package: str, network: str, node: str | None) -> NetworkNode:
    """Node of an encoder that is named as in its package.

    Raises
    ------
    InputError
        One of them is no name, or two nodes are given.
    """
    if not isinstance(network, str):
        raise InputError(f"option network={network!r} must be the name of a model of {package}")
    return find_node(f"{package}/{network}", node)
