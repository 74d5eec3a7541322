"""Which stages run, are required or forced, and what a run records."""

import json
from pathlib import Path

import pytest

from cppcl.errors import InputError
from flows.record import peak_memory_bytes
from flows.selection import Selection
from tasks.stages.contract import StageNotStoredError
from tasks.stages.names import STAGES
from tasks.workspace import Workspace


def modes(selection: Selection) -> list[str]:
    return [selection.mode(stage) if selection.runs(stage) else "-" for stage in STAGES]


R, F, Q, N = "reuse", "force", "require", "-"


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), [R] * 10),
        (Selection(only="fetch"), [R] + [N] * 9),
        (Selection(only="learn"), [Q, Q, R] + [N] * 7),
        (Selection(only="extract"), [Q, Q, Q, R] + [N] * 6),
        (Selection(only="report"), [Q] * 9 + [R]),
        (Selection(only="extract", force=("extract",)), [Q, Q, Q, F] + [N] * 6),
        (Selection(only="tune"), [Q] * 5 + [R] + [N] * 4),
        (Selection(start="fetch"), [F] * 10),
        (Selection(start="train"), [Q] * 6 + [F] * 4),
        (Selection(start="report"), [Q] * 9 + [F]),
        (Selection(force=("train",)), [R] * 6 + [F] + [R] * 3),
        (Selection(until="curricula"), [R] * 5 + [N] * 5),
        (Selection(start="extract", until="tune"), [Q] * 3 + [F] * 3 + [N] * 4),
        (Selection(until="tune", force=("learn",)), [R, R, F, R, R, R] + [N] * 4),
        (Selection(force=("split", "report")), [R, F, R, R, R, R, R, R, R, F]),
    ],
    ids=str,
)
def test_modes_of_the_stages(selection, expected):
    assert modes(selection) == expected


def test_wrong_selections():
    for wrong in ({"only": "trian"}, {"start": "x"}, {"force": ("train", "y")}):
        with pytest.raises(InputError, match="is not one of fetch, split"):
            Selection(**wrong)
    with pytest.raises(InputError, match="exclude each other"):
        Selection(only="train", start="train")
    with pytest.raises(InputError, match="exclude each other"):
        Selection(only="train", until="train")
    with pytest.raises(InputError, match="--from train comes after --until extract"):
        Selection(start="train", until="extract")
    with pytest.raises(InputError, match="--force train has no effect with --until tune"):
        Selection(force=("train",), until="tune")
    for without_effect in ({"only": "extract"}, {"only": "report"}, {"start": "encode"}):
        with pytest.raises(InputError, match=r"--force train has no effect with --(only|from)"):
            Selection(**without_effect, force=("train",))


def test_peak_memory_is_that_of_this_process():
    # numpy and pydantic are loaded: tens of megabytes, whatever the unit of the system call.
    assert 3e7 < peak_memory_bytes() < 2e10


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def record(place: Workspace, name: str, stamp: str, **artifacts: str) -> None:
    place.record_run(name, stamp, {"experiment": name, "artifacts": artifacts})


def test_the_latest_run_of_an_experiment_is_found(place):
    # Stamps decide, not the alphabet of names with a dash; a clock set back hides no run.
    record(place, "b", "20260101T000000000000Z", encode="1" * 32)
    record(place, "b", "20260103T000000000000Z", encode="3" * 32)
    record(place, "a-b", "20260102T000000000000Z", encode="2" * 32)
    assert place.find_run("b")[0] == "b-20260103T000000000000Z"
    assert place.find_run("b-20260101T000000000000Z")[1]["artifacts"]["encode"] == "1" * 32
    assert place.find_run("a-b")[0] == "a-b-20260103T000000000001Z"
    assert list(place.run_records())[-1] == "a-b-20260103T000000000001Z"
    assert str(place.find_model("b")) == "encode/" + "3" * 32
    missing = r"no run 'c' .*were run: a-b, b\).*cppcl run EXPERIMENT --workspace \S+"
    with pytest.raises(InputError, match=f"{missing}$"):
        place.find_run("c")
    with pytest.raises(InputError, match=f"{missing} or a gallery called 'c'"):
        place.find_model("c")
    record(place, "shapes", "20260104T000000000000Z")
    with pytest.raises(InputError, match=r"no run 'shape' .*did you mean 'shapes'\?$"):
        place.find_run("shape")


def test_a_run_of_a_file_is_made_again_from_the_file(place):
    stamp = "20260101T000000000000Z"
    made = {"experiment": "a", "artifacts": {}, "source": "/lab/a.yaml"}
    place.record_run("a", stamp, made)
    with pytest.raises(InputError, match=r"with: cppcl run /lab/a\.yaml --workspace"):
        place.find_run("a", "encode")


def test_no_runs_yet(place):
    assert place.run_records() == {}
    with pytest.raises(InputError, match="none yet"):
        place.find_run("emoji")


def test_records_are_written_whole(place):
    path = place.record_run("tiny", "20260101T000000000000Z", {"experiment": "tiny", "b": [1]})
    assert json.loads(path.read_text()) == {"experiment": "tiny", "b": [1]}
    assert [p.name for p in place.runs.iterdir()] == [path.name]


@pytest.mark.usefixtures("inline_blocks")
def test_stages_alone_and_in_turn(run_plain, shapes, write_experiment, workspace):
    file = write_experiment(shapes)
    one = ("seeds=[0]", "protocols.category.methods={class_cca: {tune: {ridge: [0.1, 1]}}}")
    with pytest.raises(StageNotStoredError, match=r"'fetch' .*has not been run"):
        run_plain(file, workspace, *one, selection=Selection(only="split"))
    stages = [stage for stage in STAGES if stage != "learn"]  # nothing learns here
    for number, stage in enumerate(stages[:-1]):
        chain = run_plain(file, workspace, *one, selection=Selection(only=stage))
        cached = chain.record.summary(workspace.store)["cached"]
        assert list(cached) == stages[: number + 1]
        assert [s for s, stored in cached.items() if not stored] == [stage]
        if stage == "fetch":  # the next but one is not possible yet
            with pytest.raises(StageNotStoredError, match="'split'"):
                run_plain(file, workspace, *one, selection=Selection(only="extract"))
    forced = run_plain(file, workspace, *one, selection=Selection(start="encode", only=None))
    cached = forced.record.summary(workspace.store)["cached"]
    assert [s for s, stored in cached.items() if not stored] == ["encode", "evaluate", "report"]
    with pytest.raises(StageNotStoredError, match=r"'train' \(cprl, instance, split 0\)"):
        run_plain(file, workspace, *one, "alpha=0.5", selection=Selection(start="encode"))
