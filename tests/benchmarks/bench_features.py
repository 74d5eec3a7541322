"""The network through ONNX Runtime against PyTorch, on a CUDA device, and in bfloat16.

Run from the project's folder, with one thread as on a Dask worker::

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_features.py [--pictures 32] [--runtime]
        [--precision]

``--runtime`` measures the packaged networks alone on the CPU, by both runtimes in turn, for
several numbers of pictures at a time: milliseconds of clock time a picture, median and least.
Features must agree to `TOLERANCE` of the largest of a picture, or the script fails.

Features on the device must agree with those of the CPU to 1e-3 of their norm, or the script fails.
It also says how much of the time goes into preparing pictures, which page-locked buffers and
threads are meant to hide.

``--precision`` measures bfloat16 alone, against float32 on the same device: time, the largest
error relative to the norm of a picture's features, and the least cosine. Weights of networks
other than the packaged one are random, of a fixed seed, so their errors are a guide only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from bench_descriptors import sketches
from entries import seconds

from cppcl.features import make_extractor
from cppcl.features.networks.onnx_runtime import TOLERANCE
from cppcl.features.networks.packaged import PACKAGED

AGREEMENT = 1e-3
NETWORKS = ("efficientnet_lite0", "alexnet", "caffenet", "resnet50:avgpool", "vit_b_32:encoder")
"""Networks whose precision is measured."""


def milliseconds(work: Callable[[], object], n: int) -> float:
    """Median time a picture after one warm-up."""
    work()
    return 1e3 * seconds(work, 3) / n


def with_weights(network: str, folder: Path) -> dict[str, Any]:
    """Options of a network, with a file of random weights where none come with a package."""
    import torch
    import torchvision

    from cppcl.features.networks.loading import build, find_node

    name, _, node = network.partition(":")
    if name == "efficientnet_lite0":
        return {"network": name}
    torch.manual_seed(0)
    if name == "caffenet":
        module = build(find_node(name, None))[0].to_empty(device="cpu")
        for layer in module.children():
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()
    else:
        module = torchvision.models.get_model(name, weights=None)
    path = folder / f"{name}.pth"
    torch.save(module.state_dict(), path)
    return {"network": name, "node": node or None, "weights": str(path)}


def runtimes(pictures: list[NDArray[np.uint8]]) -> None:
    """Compare ONNX Runtime with PyTorch, as the extractor uses them on the CPU."""
    import torch

    from cppcl.features.networks import cnn
    from cppcl.features.networks.loading import Network

    def stay(network: Network) -> Network:
        network.module.to(memory_format=torch.channels_last)
        return network

    print(f"ONNX Runtime against PyTorch on the CPU, {torch.get_num_threads()} threads")
    through, load, available = cnn.through_onnx_runtime, cnn._loaded, torch.cuda.is_available
    torch.cuda.is_available = lambda: False
    try:
        for name in PACKAGED:
            extractor = make_extractor("cnn", {"network": name})
            networks, features = {}, {}
            for runtime, change in (("PyTorch", stay), ("ONNX Runtime", through)):
                cnn.through_onnx_runtime = change
                load.cache_clear()
                features[runtime] = extractor.transform(pictures)
                networks[runtime] = load(extractor._target, None, (0, 0), "cpu", "float32")
            expected = features["PyTorch"]
            error = np.abs(features["ONNX Runtime"] - expected) / expected.max(1, keepdims=True)
            if error.max() > TOLERANCE:
                raise SystemExit(f"{name}: features differ by {error.max():.1e} of the largest")
            for size in sorted({1, 8, len(pictures)}):
                times = {runtime: [] for runtime in networks}
                for _ in range(max(3, 64 // size)):
                    for runtime, network in networks.items():
                        cnn._loaded = lambda *given, n=network: n
                        work = partial(extractor.transform, pictures[:size])
                        times[runtime].append(1e3 * seconds(work, 1) / size)
                (slow, slowest), (fast, fastest) = (
                    (np.median(given), min(given)) for given in times.values()
                )
                print(
                    f"{name}, {size:2} pictures: PyTorch {slow:6.2f} ms (least {slowest:6.2f}), "
                    f"ONNX Runtime {fast:6.2f} ms (least {fastest:6.2f}), {slow / fast:.2f} times "
                    f"as many a second, largest difference {error.max():.1e}"
                )
            cnn._loaded = load
    finally:
        cnn.through_onnx_runtime, cnn._loaded = through, load
        torch.cuda.is_available = available


def precision(pictures: list[NDArray[np.uint8]]) -> None:
    """Time and error of bfloat16, on CUDA where there is one."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"bfloat16 against float32 on {device}, {torch.get_num_threads()} threads")
    with TemporaryDirectory() as folder:
        for network in NETWORKS:
            options = with_weights(network, Path(folder))
            features, times = {}, {}
            for kind in ("float32", "bfloat16"):
                extractor = make_extractor("cnn", {**options, "precision": kind})
                features[kind] = extractor.transform(pictures).astype(np.float64)
                times[kind] = milliseconds(
                    lambda e=extractor: e.transform(pictures), len(pictures)
                )
            exact, near = features["float32"], features["bfloat16"]
            norms = np.linalg.norm(exact, axis=1)
            error = (np.linalg.norm(near - exact, axis=1) / norms).max()
            cosine = ((near * exact).sum(axis=1) / norms / np.linalg.norm(near, axis=1)).min()
            print(
                f"{network:20} float32 {times['float32']:7.2f} ms, bfloat16 "
                f"{times['bfloat16']:7.2f} ms a picture, relative error {error:.1e}, "
                f"1 - cosine {1 - cosine:.1e}"
            )


def on_cuda(pictures: list[NDArray[np.uint8]]) -> None:
    """Compare the network on CUDA with the CPU, in values and in time."""
    import torch

    from cppcl.features.networks.input import prepare
    from cppcl.features.networks.loading import build, find_node

    if not torch.cuda.is_available():
        print("no CUDA device: the network ran on the CPU alone")
        return
    name = torch.cuda.get_device_name()
    many = pictures * 8
    _, preprocessing = build(find_node("efficientnet_lite0", None))
    preparing = milliseconds(lambda: [prepare(p, preprocessing) for p in many], len(many))
    print(f"preparing a picture on one core: {preparing:.2f} ms")
    for options in ({}, {"flip": True}, {"framing": "crop"}):
        extractor = make_extractor("cnn", options)
        fast = extractor.transform(many)
        again = make_extractor("cnn", options).transform(many)
        if fast.tobytes() != again.tobytes():
            raise SystemExit(f"features on {name} with {options} are not the same when repeated")
        time_cuda = milliseconds(lambda e=extractor: e.transform(many), len(many))
        available = torch.cuda.is_available
        torch.cuda.is_available = lambda: False
        try:
            slow = extractor.transform(pictures)
            time_cpu = milliseconds(lambda e=extractor: e.transform(pictures), len(pictures))
        finally:
            torch.cuda.is_available = available
        part = fast[: len(slow)]
        error = float((np.linalg.norm(part - slow, axis=1) / np.linalg.norm(slow, axis=1)).max())
        print(
            f"{name}, {options}: {time_cuda:.2f} ms, CPU {time_cpu:.2f} ms, "
            f"relative difference {error:.1e}"
        )
        if error > AGREEMENT:
            raise SystemExit(f"features on {name} differ from the CPU's by more than {AGREEMENT}")


def main() -> None:
    """Compare runtimes on the CPU, and CUDA with the CPU; or bfloat16 with float32."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=32)
    parser.add_argument("--runtime", action="store_true", help="measure runtimes alone")
    parser.add_argument("--precision", action="store_true", help="measure bfloat16 alone")
    options = parser.parse_args()
    pictures = sketches(options.pictures)
    if options.precision:
        precision(pictures)
        return
    runtimes(pictures)
    if not options.runtime:
        on_cuda(pictures)


if __name__ == "__main__":
    main()
