"""Arrays on the processor or on a GPU."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


def on_device(array: NDArray[Any], device: str) -> Tensor:
    """Return a torch tensor on a device; one that shares the array's memory on 'cpu'."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def placed(array: NDArray[Any], device: str) -> Any:
    """Return the array itself for 'cpu', a torch tensor on any other device.

    What computes with operators and methods that both have runs on either.
    """
    return array if device == "cpu" else on_device(array, device)


def to_numpy(array: Any) -> NDArray[Any]:
    """Return a numpy array of what `placed` returned."""
    numpy: NDArray[Any] = array if isinstance(array, np.ndarray) else array.cpu().numpy()
    return numpy


def check_device_name(device: str) -> str:
    """Return the name of a device that torch knows, whether or not this machine has it.

    Raises
    ------
    InputError
        For any other.
    """
    if not isinstance(device, str):
        raise InputError(f"device={reprlib.repr(device)} must be a name, such as 'cpu' or 'cuda'")
    if device == "cpu":
        return device
    import torch

    try:
        torch.device(device)
    except (RuntimeError, TypeError):
        raise InputError(
            f"device={device!r} is none that torch knows; use 'cpu', 'cuda' or 'cuda:1'"
        ) from None
    return device


def check_device(device: str) -> str:
    """Return a device that this machine has.

    Raises
    ------
    InputError
        For a device that torch does not know or cannot use here.
    """
    if device == "cpu":
        return device
    import torch

    try:
        torch.zeros(1, device=device).item()  # 'meta' holds no numbers
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            f"device={device!r} cannot be used here ({str(error).splitlines()[0]}); use "
            "device='cpu', or a machine and a torch build with that device"
        ) from None
    return device
