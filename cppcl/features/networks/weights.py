"""Weights of pretrained networks: their names, files and downloads."""

from __future__ import annotations

import hashlib
import pickle
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cppcl.errors import DataUnavailableError, InputError
from cppcl.features.networks.caffemodel import read_caffemodel
from cppcl.features.networks.packaged import PACKAGED, packaged_weights
from cppcl.validation import suggestion

if TYPE_CHECKING:
    import torch

CONNECT_SECONDS = 10.0
"""How long to wait for the server of torchvision's weights to answer."""

FORMATS = (
    "a state_dict that torch.save wrote, or a .safetensors, .npz or .caffemodel file of the same "
    "arrays"
)


def weights_identity(network: str, weights: Path | None) -> str:
    """Identify weights by their content: the same string for the same numbers.

    Parameters
    ----------
    network : str
        A packaged network, or the name of a torchvision model, where `weights` is None.
    weights : Path or None
        A file, or None for the published weights.

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
    if network in PACKAGED:
        return PACKAGED[network].weights
    return str(default_weights(network))


def read_weights(network: str, weights: Path | None) -> dict[str, torch.Tensor]:
    """Read the weights of a network, running no code of the file.

    Parameters
    ----------
    network : str
        A packaged network, or the name of a torchvision model, where `weights` is None.
    weights : Path or None
        A file, or None for the published weights, which torchvision downloads where they are not
        yet on this machine. Files are told apart by their suffix: ``.caffemodel`` (layers become
        ``<layer>.weight`` and ``<layer>.bias``), ``.npz``, ``.safetensors``, and anything else as
        what torch.save wrote. A state_dict may lie in an entry 'state_dict' or 'model', and its
        names may begin with 'module.', as training scripts leave it.

    Raises
    ------
    DataUnavailableError
        The weights are not on this machine and cannot be downloaded.
    InputError
        The file is damaged or holds no named arrays.
    """
    if weights is not None:
        return _read(weights)
    if network in PACKAGED:
        return _read(packaged_weights(network))
    return _published_by_torchvision(network)


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
        others = (*PACKAGED, "caffenet", "caffe_alexnet", "timm/NAME", "open_clip/NAME")
        raise InputError(
            f"option network: torchvision has no model {name!r}"
            f"{suggestion(name, (*known, *others))}"
        )
    return torchvision.models.get_model_weights(name).DEFAULT


def _require(path: Path) -> None:
    if not path.is_file():
        raise DataUnavailableError(
            f"option weights={str(path)!r}: no such file; it must be {FORMATS}"
        )


def _read(path: Path) -> dict[str, torch.Tensor]:
    _require(path)
    readers = {".caffemodel": _caffe, ".npz": _npz, ".safetensors": _safetensors}
    read: Callable[[Path], Any] = readers.get(path.suffix.lower(), _saved_by_torch)
    content = read(path)
    for wrapper in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if isinstance(content, Mapping) and content and all(_in_module(key) for key in content):
        content = {key.removeprefix("module."): value for key, value in content.items()}
    return content  # type: ignore[no-any-return]


def _in_module(name: Any) -> bool:
    return isinstance(name, str) and name.startswith("module.")


def _saved_by_torch(path: Path) -> Any:
    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file makes it raise almost anything
        raise InputError(
            f"option weights={str(path)!r} cannot be read as a state_dict: it is damaged, or "
            f"holds more than tensors ({' '.join(str(error).split())[:200]})"
        ) from error


def _npz(path: Path) -> dict[str, torch.Tensor]:
    import torch

    try:
        # Opened here, since numpy leaves open what it cannot read.
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: torch.from_numpy(np.array(file[name])) for name in file.files}
    except (
        OSError,
        ValueError,
        TypeError,
        AttributeError,
        EOFError,
        NotImplementedError,
        MemoryError,  # of an array that is said to be larger than any memory
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise InputError(
            f"option weights={str(path)!r} cannot be read as arrays by name: it is damaged, or "
            f"holds more than numbers ({' '.join(str(error).split())[:200]})"
        ) from error


def _safetensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        # Read, not mapped: the network stays as it is if the file is overwritten.
        return load(path.read_bytes())
    except (SafetensorError, KeyError) as error:  # KeyError: a type of numbers that torch lacks
        raise InputError(
            f"option weights={str(path)!r} cannot be read as .safetensors: it is damaged or of "
            f"another kind, so fetch it again ({' '.join(str(error).split())[:200]})"
        ) from error


def _caffe(path: Path) -> dict[str, torch.Tensor]:
    import torch

    return {
        f"{layer}.{name}": torch.from_numpy(blob.astype(np.float32))
        for layer, blobs in read_caffemodel(path).items()
        for name, blob in zip(("weight", "bias"), blobs, strict=False)
    }


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
            f"option weights, or use network={next(iter(PACKAGED))!r}, which comes with the "
            "packages of cppcl[demo] and needs no download"
        ) from error
    except (RuntimeError, EOFError, KeyError, ValueError, pickle.UnpicklingError) as error:
        raise DataUnavailableError(
            f"the weights {path} of torchvision's {name} are damaged ({error}); delete the file "
            "and run again"
        ) from error
