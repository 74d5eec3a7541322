"""Rendering is bounded in time and memory, and its process can die."""

import os
import signal
import threading

import pytest

from cppcl.errors import PictureError
from cppcl.pictures.decoding import decode_picture
from cppcl.pictures.svg import process

BOX = '<rect width="10" height="10" {}/>'


def svg(body):
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">{body}</svg>'.encode()


PATTERN = (
    '<pattern id="p" width="{0}" height="{0}" patternUnits="userSpaceOnUse">'
    + BOX.format("")
    + "</pattern>"
    + BOX.format('fill="url(#p)"')
)
COPIES = (
    '<g id="a0">'
    + BOX.format("")
    + "</g>"
    + "".join(f'<g id="a{n}">' + f'<use href="#a{n - 1}"/>' * 10 + "</g>" for n in range(1, 10))
)


FILTERS = (
    '<filter id="f">'
    + '<feMorphology operator="dilate" radius="5"/>' * 50
    + "</filter>"
    + BOX.format('filter="url(#f)"')
)


@pytest.mark.parametrize(
    ("drawing", "reason"),
    [
        (PATTERN.format(100_000), "rendering the SVG takes over 513 MiB of memory"),
        (PATTERN.format(10_000), "rendering the SVG takes over 513 MiB of memory"),
        (FILTERS, "rendering the SVG takes over 0 s"),
        (COPIES, "SVG cannot be rendered"),
    ],
    ids=["pattern", "smaller pattern", "filters", "copies"],
)
def test_what_takes_too_much_is_named_and_the_next_is_drawn(drawing, reason, monkeypatch):
    monkeypatch.setattr(process, "SECONDS", 0)
    with pytest.raises(PictureError, match=rf"x\.svg: {reason}"):
        decode_picture(svg(drawing), longest_side=256, name="x.svg")
    assert decode_picture(svg(BOX.format("")), longest_side=8).max() == 0


def test_a_process_that_was_ended_is_started_anew():
    plain = svg(BOX.format(""))
    decode_picture(plain, longest_side=8)
    (renderer, *_) = process._pool._idle[-1:]
    os.kill(renderer._process.pid, signal.SIGKILL)
    assert decode_picture(plain, longest_side=8).max() == 0
    assert process._pool._idle[-1] is not renderer


def test_threads_and_forked_processes_have_renderers_of_their_own():
    plain = svg(BOX.format(""))
    decode_picture(plain, longest_side=8)
    before = {r._process.pid for r in process._pool._idle}
    child = os.fork()
    if not child:
        try:
            decode_picture(plain, longest_side=8)
            mine = {r._process.pid for r in process._pool._idle}
            process._pool.close()
        except BaseException:
            os._exit(1)
        os._exit(int(bool(mine & before)))
    assert os.waitpid(child, 0)[1] == 0
    failed = []

    def draw():
        for _ in range(5):
            if decode_picture(plain, longest_side=8).max():
                failed.append(1)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
