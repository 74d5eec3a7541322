"""Text towers of open_clip: words in the space of the image tower's codes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import DataUnavailableError, InputError
from cppcl.features.networks.encoders import build_clip, encoder_package, quiet
from cppcl.features.networks.weights import read_weights


def words_of_clip(
    network: str, tag: str | None, weights: Path, texts: Sequence[str]
) -> NDArray[np.float32]:
    """Codes of texts, as the text tower projects them, (n, m).

    Parameters
    ----------
    network, tag : str, str or None
        Model of open_clip, and which of its published weights.
    weights : Path
        File of the whole model.
    texts : sequence of str
        At most as long as the model reads; what is beyond is cut off.

    Raises
    ------
    DataUnavailableError
        What divides texts into tokens is not on this machine.
    InputError
        The file has no text tower.
    """
    import torch

    status = weights.stat()
    model, divide = _loaded(network, tag, weights, (status.st_mtime_ns, status.st_size))
    with torch.inference_mode():
        rows: NDArray[np.float32] = model.encode_text(divide(list(texts))).numpy()
    return rows


@lru_cache(maxsize=1)
def _loaded(network: str, tag: str | None, weights: Path, state: tuple[int, int]) -> Any:
    """Model and tokenizer; the image tower's weights are let go."""
    import torch

    package = encoder_package(f"open_clip/{network}")
    arrays = read_weights(f"open_clip/{network}", weights)
    with torch.random.fork_rng(devices=[]), quiet():
        model = build_clip(package, network, tag)
        try:
            model.load_state_dict(arrays)
        except (RuntimeError, AttributeError, TypeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"option weights={str(weights)!r} holds no text tower of {network} ({reason}); "
                "give the file of the whole model"
            ) from error
        try:
            divide = package.get_tokenizer(network)
        except (ImportError, OSError, AttributeError, TypeError) as error:
            raise DataUnavailableError(
                f"network {network!r}: what it divides words by is not on this machine "
                f"({' '.join(str(error).split())[:200]}); run open_clip.get_tokenizer"
                f"({network!r}) where there is a network, and copy its cache, or use "
                "network='ViT-B-32', whose own comes with the package"
            ) from error
    model.visual = None
    return model.float().eval().requires_grad_(False), divide
