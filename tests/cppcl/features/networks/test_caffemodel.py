import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cppcl.errors import InputError
from cppcl.features.networks.caffemodel import read_caffemodel

from .caffe_files import blob, caffemodel, field, varint

RNG = np.random.default_rng(0)
LAYERS = {
    "conv1": [RNG.standard_normal((2, 3, 5, 4), dtype=np.float32), RNG.random(2, np.float32)],
    "fc/6": [RNG.standard_normal((300, 2), dtype=np.float32), RNG.random(300, np.float32)],
    "relu": [],
}


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "net.caffemodel"
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_come_back(write, old, packed, dtype):
    layers = {name: [a.astype(dtype) for a in arrays] for name, arrays in LAYERS.items()}
    found = read_caffemodel(write(caffemodel(layers, old=old, packed=packed)))
    assert list(found) == ["conv1", "fc/6"]  # what has no weights is left out
    for name, arrays in found.items():
        for array, expected in zip(arrays, layers[name], strict=True):
            assert array.dtype == dtype
            assert array.shape == ((1,) * (4 - expected.ndim) * old + expected.shape)
            np.testing.assert_array_equal(array.reshape(expected.shape), expected)


def test_shapes_may_be_written_one_side_a_field(write):
    shape = b"".join(varint(1 << 3) + varint(side) for side in (2, 3))
    data = field(5, np.arange(6, dtype="<f4").tobytes())
    layer = field(1, b"fc") + field(7, data + field(7, shape))
    ((array,),) = read_caffemodel(write(field(100, layer))).values()
    np.testing.assert_array_equal(array, np.arange(6).reshape(2, 3))


def test_numbers_without_a_shape_are_a_vector(write):
    layer = field(1, b"fc") + field(7, field(5, np.arange(6, dtype="<f4").tobytes()))
    ((array,),) = read_caffemodel(write(field(100, layer))).values()
    np.testing.assert_array_equal(array, np.arange(6))


def test_a_file_cut_anywhere_is_refused_or_lacks_layers(write):
    content = caffemodel(LAYERS)
    whole = read_caffemodel(write(content))
    for length in range(0, len(content), 7):
        try:
            found = read_caffemodel(write(content[:length]))
        except InputError as error:
            assert "net.caffemodel" in str(error)  # noqa: PT017 - some lengths end on a field
        else:
            assert list(whole)[: len(found)] == list(found)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no layer with weights"),
        (field(100, field(1, b"relu")), "holds no layer with weights"),
        (b"\x80", "ends in the middle of a number"),
        (b"\xff" * 11, "more than ten bytes"),
        (varint(3 << 3 | 3), "no wire type 3"),
        (varint(2 << 3 | 2) + varint(2**60) + b"abc", "does not fit"),
        (varint(30 << 3 | 1) + b"1234", "does not fit"),
        (field(100, field(1, b"\xff\xff")), "decode"),
        (field(100, field(7, field(5, b"12345"))), "4-byte numbers"),
        (field(100, field(7, varint(5 << 3) + b"\1")), "4-byte numbers"),
        (
            field(100, field(7, blob(np.zeros((2, 3), np.float32)) + field(5, bytes(4)))),
            r"shape \(2, 3\) has 7 numbers",
        ),
        (
            field(100, field(7, field(5, b"") + field(7, field(1, b"\0" + varint(2**63) * 2)))),
            "cannot be read",
        ),
        (b"PK\x03\x04 a zip archive", "wire type|does not fit"),
    ],
)
def test_what_is_no_caffemodel_is_named(write, content, words):
    with pytest.raises(InputError, match=rf"net\.caffemodel.*({words})"):
        read_caffemodel(write(content))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.binary(max_size=60) | st.binary(max_size=40).map(lambda b: field(100, field(7, b))))
def test_any_bytes_give_arrays_or_an_input_error(write, content):
    try:
        layers = read_caffemodel(write(content))
    except InputError:
        return
    assert all(isinstance(array, np.ndarray) for arrays in layers.values() for array in arrays)
