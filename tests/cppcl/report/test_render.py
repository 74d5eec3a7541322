import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from PIL import Image

from cppcl.report import LearnedFeatures, MethodResult, ProtocolResult, StageTime, render_report
from cppcl.report.comparisons import difference_sentence
from tests.cppcl.report.pages import Page, rows_of


@pytest.fixture(scope="module")
def html(files):
    return files["report.html"].decode()


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def png(uri):
    head, _, content = uri.partition(",")
    assert head == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(content, validate=True)))


def test_files(files):
    kinds = ("precision_recall", "rank_k", "pacing", "grid")
    pictures = {f"{kind}_{name}.png" for kind in kinds for name in ("instance", "category")}
    tables = {"scores", "summary", "precision_recall", "differences", "published"}
    pages = {"report.html", "comparisons.json"}
    assert set(files) == {*pages, *(f"{name}.csv" for name in tables)} | pictures
    for name in pictures:
        with Image.open(io.BytesIO(files[name])) as image:
            image.load()
            assert image.format == "PNG"
            assert min(image.size) > 300
            assert not {"Software", "Creation Time", "date:create"} & set(image.info)


def test_same_data_same_bytes(build, bare, protocol):
    def render():
        grid = replace(protocol.grid, queries=protocol.grid.queries[:2])
        return render_report(build(protocols=[replace(bare[1], grid=grid)]))

    assert render() == render()


def test_page_needs_nothing_outside_itself(html, page):
    for _, attributes in page.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster", "background"):
            value = attributes.get(name, "#")
            assert value.startswith(("#", "data:image/png;base64,"))
    assert not {"script", "link", "iframe", "object", "form"} & {tag for tag, _ in page.elements}
    assert not re.search(r"url\(|@import", html)
    # The only addresses are the licence lines, as text.
    assert len(re.findall("https?://", html)) == len(re.findall("https?://", page.text))
    anchors = {link["href"] for link in page.all("a")}
    assert anchors == {f"#{part['id']}" for part in page.all("section")}


def test_noise_cannot_make_the_page_large(build, bare, protocol):
    noise = np.random.default_rng(0).integers(0, 256, (120, 120, 3), dtype=np.uint8)
    queries = [
        replace(q, picture=noise, nearest=[replace(n, picture=noise) for n in q.nearest])
        for q in protocol.grid.queries
    ]
    protocol = replace(bare[1], grid=replace(protocol.grid, queries=queries))
    assert len(render_report(build(protocols=[protocol]))["report.html"]) < 1_000_000


def test_every_picture_has_a_text_and_decodes(page):
    pictures = page.all("img")
    assert len(pictures) == 2 * (3 + 8 * 6)
    assert all(picture["alt"] for picture in pictures)
    for picture in pictures:
        png(picture["src"]).load()
    assert sum(png(picture["src"]).size == (96, 96) for picture in pictures) == 2 * 8 * 6


def test_page_shows_everything(page, data):
    text = " ".join(page.text.split())
    for expected in (
        data.convention,
        *data.licences,
        *data.findings,
        *data.skipped[0],
        data.created,
        "1 skipped picture",
        "over 3 splits",
        "alpha: 0.003",
        "torch 2.14.1",
        "With one relevant picture a query",
    ):
        assert expected in text, expected
    assert text.count(data.convention) == 2
    assert text.count("With one relevant picture a query") == 1


def test_page_compares_methods(html, data):
    sections = [
        html.split(f'<section id="{p.name}">')[1].split("</section>")[0] for p in data.protocols
    ]
    assert ["<h3>Beside the published numbers</h3>" in s for s in sections] == [False, True]
    for expected in (
        "Table 1 of a publication (2 splits): rank-5 (%), rank-k (Acc@k) over the whole gallery.",
        '<th scope="row">CPRL, B (μ = 0)</th><td>81.25</td>',
        '<th scope="row">ridge CCA</th><td>–</td>',
        '<th scope="row">raw cosine</th><td>99.0</td>',
        '<th scope="col">first 2 splits</th>',
    ):
        assert expected in sections[1], expected
    scores = (
        "rank-1, rank-k (Acc@k) over the whole gallery",
        "mAP, mAP over the whole ranking, divided by R (all right pictures)",
    )
    for protocol, section, score in zip(data.protocols, sections, scores, strict=True):
        caption = f"raw cosine minus each other method on the same queries: {score}; in points"
        assert caption in section
        assert difference_sentence(protocol) in section
        for name, found in protocol.differences.items():
            cells = f"<td>{100 * found.mean:+.2f}</td><td>[{100 * found.low:+.2f}, "
            assert f'<th scope="row">{name}</th>{cells}' in section


def test_configuration_reads_back(html, data):
    shown = re.search(r"<pre>(.*?)</pre>", html, re.DOTALL)[1]
    assert yaml.safe_load(shown) == data.configuration


def test_right_and_wrong_are_marked_in_two_ways(html, data):
    for protocol in data.protocols:
        section = html.split(f'<section id="{protocol.name}">')[1].split("</section>")[0]
        found = re.findall(
            r'<li class="(right|wrong)">.*?alt="Picture (\d), (\w+): ([^"]+)">(.*?)</li>', section
        )
        shown = [
            (kind, int(rank), "✓" in rest, label)
            for kind, rank, kind_again, label, rest in found
            if kind == kind_again
        ]
        assert shown == [
            ("right" if n.correct else "wrong", rank, n.correct, n.label)
            for query in protocol.grid.queries
            for rank, n in enumerate(query.nearest, 1)
        ]


def test_stages(html):
    assert re.search(r"fetch</th><td>3\.2</td><td>cached</td>", html)
    assert re.search(r"extract</th><td>81\.5</td><td></td>", html)
    assert re.search(r"together</th><td>129\.0|together</th><td>128\.9", html)


def test_text_is_escaped(build, data):
    evil = '<script>alert("1")</script>'
    protocol = data.protocols[0]
    query = protocol.grid.queries[0]
    shown = replace(query, label=evil, nearest=[replace(query.nearest[0], label=evil)])
    protocol = replace(
        protocol,
        name=evil,
        description=evil,
        methods={
            evil + " $x_1$": next(iter(protocol.methods.values())),
            "_hidden": protocol.methods["ridge CCA"],
        },
        grid=replace(protocol.grid, method=evil, queries=[shown]),
    )
    files = render_report(
        build(
            experiment=evil,
            configuration={evil: evil},
            protocols=[protocol, replace(protocol, name="<script> alert 1 /script")],
            stages=[StageTime(evil, 1.0, False)],
            licences=[evil],
            findings=[evil],
            skipped=[(evil, evil)],
            versions={evil: evil},
            created=evil,
        )
    )
    page = Page(files["report.html"].decode())
    assert not page.all("script")
    assert page.text.count(evil) >= 15
    assert all(re.fullmatch(r"[a-z0-9_.-]+", name) for name in files)
    assert "grid_script-alert-1-script.png" in files
    assert "grid_script-alert-1-script-1.png" in files


def png_of(value):
    buffer = io.BytesIO()
    Image.fromarray(np.full((20, 30, 3), value, dtype=np.uint8)).save(buffer, format="PNG")
    return buffer.getvalue()


def test_what_was_learned_is_shown_with_its_key(build, bare):
    seen = (["a, split 1"], (), png_of(7), "Dark is many")
    first, second, words = (
        LearnedFeatures("learn/0123456789abcdef", "lks", 40, *seen),
        LearnedFeatures("learn/fedcba9876543210", "lks", 41, ["a, split 2"], picture=png_of(8)),
        LearnedFeatures("learn/00aa", "sift", 42, ["b, split 1", "b, split 2"], ["<3 words> 0"]),
    )
    files = render_report(build(protocols=bare, learned=[first, second, words]))
    assert files["learned_0123456789ab.png"] == first.picture
    assert files["learned_fedcba987654.png"] == second.picture
    page = files["report.html"].decode()
    section = page.split('<section id="about-learned">')[1].split("</section>")[0]
    cells = "<td>lks</td><td>40</td><td>a, split 1</td>"
    assert f'<th scope="row">learn/0123456789abcdef</th>{cells}' in section
    assert "<td>sift</td><td>42</td><td>b, split 1; b, split 2</td>" in section
    assert "learn/00aa: &lt;3 words&gt; 0." in section
    (uri,) = re.findall(r'<img src="data:image/png;base64,([^"]+)"', section)
    with Image.open(io.BytesIO(base64.b64decode(uri))) as shown:
        assert np.unique(np.asarray(shown.convert("RGB"))).tolist() == [7]
    assert "learn/0123456789abcdef (lks): Dark is many." in section
    assert "Beside this page: learned_fedcba987654.png." in section
    assert '<a href="#about-learned">' in page
    one = render_report(build(protocols=bare, learned=[first]))["report.html"].decode()
    assert "Beside this page" not in one
    none = render_report(build(protocols=bare))
    assert "about-learned" not in none["report.html"].decode()
    assert not [name for name in none if name.startswith("learned")]


def test_little_data(build):
    method = MethodResult([{"map": 0.25}], np.linspace(1, 0, 101))
    protocol = ProtocolResult("类别 1", "", {}, {"only": method})
    files = render_report(
        build(protocols=[protocol], stages=[], findings=(), skipped=(), versions={}, created="")
    )
    assert set(files) == {
        "report.html",
        "scores.csv",
        "summary.csv",
        "precision_recall.csv",
        "precision_recall_1.png",
    }
    text = Page(files["report.html"].decode()).text
    for absent in (
        "What is found",
        "Training",
        "Rank-k accuracy",
        "Counts",
        "Differences",
        "Beside the published",
        "±",
        "lines are flat",
    ):
        assert absent not in text
    for present in ("Scores of one split", "No picture was skipped", "25.0", "类别 1"):
        assert present in text


def test_scores_csv_holds_every_split(files, data):
    found = {
        (row["protocol"], row["method"], int(row["split"]), row["score"]): float(row["value"])
        for row in rows_of(files["scores.csv"])
    }
    assert found == {
        (protocol.name, name, split, key): value
        for protocol in data.protocols
        for name, method in protocol.methods.items()
        for split, scores in enumerate(method.scores)
        for key, value in scores.items()
    }


def test_summary_csv(files, data):
    row = next(
        row
        for row in rows_of(files["summary.csv"])
        if (row["protocol"], row["method"], row["score"]) == ("category", "ridge CCA", "map")
    )
    values = [scores["map"] for scores in data.protocols[1].methods["ridge CCA"].scores]
    assert int(row["splits"]) == 3
    assert float(row["mean"]) == pytest.approx(np.mean(values))
    assert float(row["std"]) == pytest.approx(np.std(values, ddof=1))
    assert float(row["chance"]) == data.protocols[1].chance["map"]


def test_precision_recall_csv(files, data):
    curve = [
        (row["recall"], float(row["precision"]))
        for row in rows_of(files["precision_recall.csv"])
        if (row["protocol"], row["method"]) == ("category", "raw cosine")
    ]
    expected = data.protocols[1].methods["raw cosine"].precision_recall
    assert [recall for recall, _ in curve] == [f"{level / 100:.2f}" for level in range(101)]
    assert [precision for _, precision in curve] == list(expected)
