"""Weights files of every format, and what is in none of them."""

import contextlib
import io
import json
import warnings
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from cppcl.errors import InputError
from cppcl.features.networks.weights import read_weights

TENSORS = {
    "a.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3) - 2.5,
    "b": torch.tensor([1.5, -3.0], dtype=torch.bfloat16),
    "c.count": torch.tensor(7),
    "half": torch.tensor([[0.5]], dtype=torch.float16),
    "none": torch.empty((0, 4)),
    "flags": torch.tensor([True, False, True]),
}


@pytest.fixture
def write(tmp_path):
    def write(content, name="net.safetensors"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert torch.equal(found[name], tensor)


def test_safetensors_come_back(write):
    content = save(TENSORS, metadata={"format": "pt"})
    assert_same(read_weights("any", write(content)), TENSORS)
    assert_same(read_weights("any", write(content, "NET.SAFETENSORS")), TENSORS)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_damaged_safetensors_are_refused(write, data):
    content = save(TENSORS)
    short = content[: data.draw(st.integers(0, len(content) - 1))]
    with pytest.raises(InputError, match=r"net\.safetensors.*damaged"):
        read_weights("any", write(short))


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F7", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2]},
    ],
)
def test_wrong_headers_are_refused(write, entry):
    text = json.dumps({"a": entry}).encode()
    with pytest.raises(InputError, match="damaged"):
        read_weights("any", write(len(text).to_bytes(8, "little") + text + bytes(8)))


def test_npz_comes_back(write, tmp_path):
    path = tmp_path / "net.npz"
    np.savez(path, **{"a.weight": np.arange(3.0), "n": np.array(4)})
    expected = {"a.weight": torch.arange(3, dtype=torch.float64), "n": torch.tensor(4)}
    assert_same(read_weights("any", path), expected)


class Sneaky:
    def __reduce__(self):
        return print, ("code ran",)


@pytest.mark.parametrize(
    "values", [np.array([Sneaky()], dtype=object), np.array(["word"])], ids=["objects", "words"]
)
def test_npz_of_more_than_numbers_is_refused(tmp_path, values, capsys):
    path = tmp_path / "net.npz"
    np.savez(path, values=values)
    with pytest.raises(InputError, match=r"net\.npz.*more than numbers"):
        read_weights("any", path)
    assert capsys.readouterr().out == ""


def test_damaged_npz_is_named(write, tmp_path):
    path = tmp_path / "whole.npz"
    np.savez(path, a=np.arange(100.0))
    content = path.read_bytes()
    for damaged in (
        b"",
        b"no archive",
        content[:200],
        content[:80] + b"\xff" * 40 + content[120:],
    ):
        with pytest.raises(InputError, match=r"net\.npz.*damaged"):
            read_weights("any", write(damaged, "net.npz"))


def test_npz_of_an_array_larger_than_memory_is_named(write):
    header, content = io.BytesIO(), io.BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (1 << 60,)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a.npy", header.getvalue())
    with pytest.raises(InputError, match=r"net\.npz.*damaged"):
        read_weights("any", write(content.getvalue(), "net.npz"))


def file_of_torch(zipped):
    content = io.BytesIO()
    torch.save(
        {"a": torch.ones(3), "b": torch.ones(2, 2)}, content, _use_new_zipfile_serialization=zipped
    )
    return content.getvalue()


SAVED = {zipped: file_of_torch(zipped) for zipped in (True, False)}


@given(st.data(), st.booleans())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_damaged_files_of_torch_are_named(write, data, zipped):
    whole = SAVED[zipped]
    at = data.draw(st.integers(0, len(whole) - 1))
    cut = data.draw(st.integers(0, 20))
    damaged = whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + cut :]
    with contextlib.suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, for a pickle of another protocol
        read_weights("any", write(damaged, "net.pt"))


@pytest.mark.parametrize("wrapper", ["state_dict", "model"])
def test_what_training_scripts_wrap_is_found(tmp_path, wrapper):
    path = tmp_path / "net.pth"
    inside = {f"module.{name}": tensor for name, tensor in TENSORS.items()}
    torch.save({"epoch": 3, wrapper: inside, "optimizer": {}}, path)
    assert_same(read_weights("any", path), TENSORS)
    torch.save({"module.a": torch.ones(1), "b": torch.ones(2)}, path)
    assert read_weights("any", path).keys() == {"module.a", "b"}
