"""Small copies of the published data sets in their official layouts, and a server of files."""

from __future__ import annotations

import io
import threading
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cppcl.datasets.published.cufs import TEST, TRAINING
from cppcl.datasets.published.qmul import VOC_CLASSES


def png(number: int, size: tuple[int, int] = (8, 6)) -> bytes:
    """A picture like no other."""
    from PIL import Image

    picture = Image.new("RGB", size, (number % 256, number // 256 % 256, 90))
    picture.putpixel((0, 0), (255, 255, 255))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def jpeg(number: int) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.open(io.BytesIO(png(number))).save(buffer, "JPEG", comment=str(number).encode())
    return buffer.getvalue()


def cufs_official() -> dict[str, bytes]:
    files = {}
    size = (200, 250)
    for where, persons in (("training", TRAINING[:4]), ("testing", TEST[:4])):
        for number, person in enumerate(persons):
            drawn = person.replace("f-", "F2-") if where == "training" else person
            base = 100 * (where == "testing") + number
            top = f"CUHK_{where}_cropped"
            files[f"{top}_photos/photo/{person}.jpg"] = png(base, size)
            files[f"{top}_sketches/sketch/{drawn}-sz1.jpg"] = png(50 + base, size)
    return files


def pacs_official() -> dict[str, bytes]:
    return {
        f"PACS/{domain}/{label}/{number:02d}.{suffix}": write(1000 * d + 100 * k + number)
        for d, (domain, suffix, write) in enumerate(
            [("sketch", "png", png), ("photo", "jpg", jpeg), ("cartoon", "jpg", jpeg)]
        )
        for k, label in enumerate(("dog", "giraffe", "person"))
        for number in range(5)
    }


def qmul_test_official() -> dict[str, bytes]:
    files = {"fine-graind-SBIR-master/Readme.txt": b"read me"}
    for k, label in enumerate(("car (sedan)", "standing bird")):
        for number in range(6):
            top = f"fine-graind-SBIR-master/Data/Test/images/{label}"
            files[f"{top}/sketch/{k * 80 + number + 1}.png"] = png(100 * k + number)
            files[f"{top}/img/2009_00{k}{number}00.jpg"] = jpeg(500 + 100 * k + number)
            files[f"{top}/cropped/2009_00{k}{number}00.jpg"] = jpeg(900 + 100 * k + number)
    return files


def tuberlin_official(
    classes: Sequence[str] = ("hot air balloon", "ant", "bus", "cup"),
) -> dict[str, bytes]:
    files = {}
    for k, drawn in enumerate(classes):
        shown = drawn.replace(" ", "_")
        for number in range(12):
            files[f"png/{drawn}/{80 * k + number + 1}.png"] = png(100 * k + number)
        for number in range(6):
            files[f"ImageResized/{shown}/n{k}_{number}.JPEG"] = jpeg(1000 + 100 * k + number)
    return files


def flickr15k_official() -> dict[str, bytes]:
    files, truth = {}, []
    for folder, (name, shape) in enumerate(
        [("big_ben", 3), ("london_bridge", 3), ("arch", 7), ("swan", 12)]
    ):
        for number in range(5):
            path = f"{name}/{number}.jpg"
            files[f"images/source/{path}"] = jpeg(100 * folder + number)
            truth.append(f"{shape} {path}")
    for drawer in range(1, 6):
        for shape in (3, 7, 12):
            files[f"330sketches/{drawer}/{shape}.png"] = png(2000 + 40 * drawer + shape)
    files["groundtruth"] = ("\n".join(truth) + "\n").encode()
    return files


def annotation(*boxes: tuple[str, int]) -> bytes:
    objects = "".join(
        f"<object><name>{name}</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
        f"<xmax>{1 + side}</xmax><ymax>{1 + side}</ymax></bndbox></object>"
        for name, side in boxes
    )
    return f"<annotation>{objects}</annotation>".encode()


def qmul_official() -> dict[str, bytes]:
    files, listing = {}, []
    voc = "VOCdevkit/VOC2010"
    for k, name in enumerate(("aeroplane", "car", "diningtable")):
        for number in range(4):
            files[f"png/{VOC_CLASSES[name]}/{80 * k + number + 1}.png"] = png(100 * k + number)
            photo = f"2008_00{k}{number}00"
            listing.append(photo)
            files[f"{voc}/JPEGImages/{photo}.jpg"] = jpeg(1000 + 100 * k + number)
            files[f"{voc}/Annotations/{photo}.xml"] = annotation((name, 9), ("person", 90))
    # Shows a table and two cars, larger together; is not in the list; shows none of the classes.
    for number, boxes in (
        ("2008_009000", [("car", 15), ("diningtable", 20), ("car", 15)]),
        ("2008_009001", [("car", 5)]),
        ("2008_009002", [("person", 5)]),
    ):
        files[f"{voc}/JPEGImages/{number}.jpg"] = jpeg(int(number[-4:]))
        files[f"{voc}/Annotations/{number}.xml"] = annotation(*boxes)
    listing += ["2008_009000", "2008_009002"]
    files[f"{voc}/ImageSets/Main/trainval.txt"] = "\n".join(listing).encode()
    files["png/zebra/1.png"] = png(77)
    return files


SKETCHY = ("cup", "bat", "teddy_bear", "tree", "hot-air_balloon", "zebra")


def sketchy_ext_official(classes: Sequence[str] = SKETCHY) -> dict[str, bytes]:
    """As the 7z archive of the authors and that of the added photos, with an augmented copy."""
    files = {}
    for k, label in enumerate(classes):
        for number in range(4):
            photo = f"n0000{k}_{number}"
            top = "256x256/{}/tx_000000000000/" + label
            files[f"{top.format('photo')}/{photo}.jpg"] = jpeg(100 * k + number)
            for drawn in (1, 2):
                content = png(2000 + 100 * k + 10 * number + drawn)
                files[f"{top.format('sketch')}/{photo}-{drawn}.png"] = content
        files[f"256x256/sketch/tx_000100000000/{label}/n0000{k}_0-1.png"] = png(5000 + k)
        # One bears the name of a photo of Sketchy.
        for name in (f"n0000{k}_0", f"ext_{k}"):
            files[f"EXTEND_image_sketchy/{label}/{name}.jpg"] = jpeg(7000 + k + len(name) * 10)
    return files


def quickdraw_ext_official(
    classes: Sequence[str] = ("palm_tree", "fire_hydrant", "cup", "cat"),
) -> dict[str, bytes]:
    return {
        f"QuickDraw_{kind}_final/{label}/{100 * k + number}.{suffix}": write(
            1000 * d + 100 * k + number
        )
        for d, (kind, suffix, write) in enumerate(
            [("sketches", "png", png), ("images", "jpg", jpeg)]
        )
        for k, label in enumerate(classes)
        for number in range(6)
    }


def qmul_v2_official(kind: str) -> dict[str, bytes]:
    files = {f"{kind}V2/photo_test.txt": b"7.png"}
    for number in range(8):
        part = "train" if number < 5 else "test"
        files[f"{kind}V2/{part}B/{number}0079.png"] = png(number)
        for drawn in (1, 2):
            files[f"{kind}V2/{part}A/{number}0079_{drawn}.png"] = png(100 + 10 * number + drawn)
    return files


OFFICIAL = {
    "cufs": cufs_official,
    "flickr15k": flickr15k_official,
    "pacs": pacs_official,
    "qmul": qmul_official,
    "qmul-test": qmul_test_official,
    "tuberlin": tuberlin_official,
    "sketchy-ext": sketchy_ext_official,
    "tuberlin-ext": tuberlin_official,
    "quickdraw-ext": quickdraw_ext_official,
    "qmul-shoe-v2": partial(qmul_v2_official, "Shoe"),
    "qmul-chair-v2": partial(qmul_v2_official, "Chair"),
}


def write_folder(root: Path, files: dict[str, bytes]) -> Path:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return root


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@dataclass
class Answer:
    """What the server does with one request.

    `drop` ends the connection after so many bytes of the body; `block` waits there until the
    test lets it go on; `ranges` tells whether the Range of a request is heeded.
    """

    content: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drop: int | None = None
    block: threading.Event | None = None
    ranges: bool = True


class FileServer:
    """Serves scripted answers: the last one of an address again and again."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.sent: dict[str, int] = defaultdict(int)
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.answer(self)

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def put(self, name: str, *answers: Answer) -> str:
        """Script the answers of an address, and return it."""
        self.answers[f"/{name}"] = list(answers)
        return f"http://127.0.0.1:{self.server.server_address[1]}/{name}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        script = self.answers.get(request.path, [Answer(status=404)])
        answer = script.pop(0) if len(script) > 1 else script[0]
        asked = request.headers.get("Range")
        self.requests.append((request.path, asked))
        body, status, headers = answer.content, answer.status, dict(answer.headers)
        stale = request.headers.get("If-Range") not in (None, headers.get("ETag"))
        if asked and status == 200 and answer.ranges and not stale:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            status = 206 if start < len(body) else 416
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            body = body[start:] if status == 206 else b""
        request.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        kept = body if answer.drop is None else body[: answer.drop]
        # Counted first: the client may be done before this thread goes on.
        self.sent[request.path] += len(kept)
        request.wfile.write(kept)
        request.wfile.flush()
        if answer.block is not None:
            answer.block.wait(60)
        request.close_connection = True

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def server():
    """A server on this machine."""
    made = FileServer()
    yield made
    made.close()
