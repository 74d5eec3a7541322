"""What a run is trained with after an audit."""

from __future__ import annotations

import numpy as np

from cppcl.audit.verdicts import Verdict, write_verdicts
from tasks.samples import open_pictures, open_split, training_samples
from tasks.stages.split import split_table


def test_verdicts_leave_out_and_relabel(stages, tmp_path):
    store = stages.workspace.store
    table = open_pictures(store, stages.table).table
    ids, labels = table.column("ids", "sketch"), table.column("labels", "sketch")
    rows = open_split(store, stages.split).train_sketches.tolist()
    first, second = rows[:2]
    other = next(label for label in labels if label != labels[first])
    verdicts = [
        Verdict(ids[first], "", labels[first], "wrong", other),
        Verdict(ids[second], "", labels[second], "wrong"),
    ]
    file = tmp_path / "verdicts.csv"
    file.write_text(write_verdicts(verdicts))

    def samples(target, audit=file):
        made = split_table(
            workspace=stages.workspace,
            table=stages.table,
            rule="instance",
            options={"n_train": 7},
            seed=0,
            audit=audit,
            target=target,
        )
        return training_samples(
            store,
            table=stages.table,
            split=made.reference,
            features=stages.features,
            target="labels",
        )

    sketches, images = samples("labels")
    assert sketches.rows.tolist() == [row for row in rows if row != second]
    expected = [other if row == first else labels[row] for row in sketches.rows]
    assert sketches.labels.tolist() == expected
    assert sketches.right.all()
    before = samples("labels", None)
    np.testing.assert_array_equal(images.labels, before[1].labels)
    # Verdicts on labels say nothing about pairs.
    assert samples("groups")[0].rows.tolist() == rows
