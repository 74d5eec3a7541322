"""The folder of a store: where artifacts lie, how they are found, and who may change them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from storage.artifact import Artifact
from storage.errors import DamagedArtifactError
from storage.files import TEMPORARY_SUFFIX, locked
from storage.recipe import Reference, check_stage, is_key, is_stage


class StoreFolder:
    """Artifacts below one folder, ``<root>/<stage>/<key>/``.

    Parameters
    ----------
    root : str or Path
        The folder; it is made by the first write.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.root)!r})"

    def path(self, reference: Reference) -> Path:
        """Return where the artifact of `reference` lies, or would."""
        return self.root / reference.stage / reference.key

    def partial(self, reference: Reference) -> Path:
        """Return where it lies while it is being made, and after that was interrupted."""
        return self.path(reference).with_name(reference.key + TEMPORARY_SUFFIX)

    def find_here(self, reference: Reference) -> Artifact | None:
        """Return the artifact, or None if it is not in this folder, even if a remote has it.

        Raises
        ------
        DamagedArtifactError
            It is here, but its manifest is damaged.
        """
        artifact = Artifact(reference, self.path(reference))
        if not artifact.path.is_dir():
            return None
        try:
            _ = artifact.manifest
        except DamagedArtifactError:
            if not artifact.path.is_dir():  # collected this very moment
                return None
            raise
        return artifact

    def references(self, stage: str | None = None) -> Iterator[Reference]:
        """Iterate over what is published, by stage and key, without opening anything."""
        if stage is not None:
            check_stage(stage)
        if not self.root.is_dir():
            return
        for folder in sorted(self.root.iterdir()):
            if is_stage(folder.name) and folder.is_dir() and stage in (None, folder.name):
                for path in sorted(folder.iterdir()):
                    if is_key(path.name) and path.is_dir():
                        yield Reference(folder.name, path.name)

    def artifacts(self, stage: str | None = None) -> Iterator[Artifact]:
        """Iterate over the published artifacts, by stage and key.

        Damaged ones are included: asking one for its manifest raises `DamagedArtifactError`.
        """
        for reference in self.references(stage):
            yield Artifact(reference, self.path(reference))

    def lock(self, reference: Reference) -> Path:
        """Return the file that is locked while an artifact is made or changed."""
        return self.root / "locks" / f"{reference.stage}-{reference.key}.lock"

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the store from being collected, for example between the stages of a run.

        Shared by any number of runs; freed by the operating system if the process is killed.
        """
        with locked(self.run_lock, shared=True):
            yield

    @property
    def run_lock(self) -> Path:
        """Locked by every run that writes (shared), and by garbage collection (alone)."""
        return self.root / "locks" / "runs.lock"

    @property
    def trash(self) -> Path:
        """Where folders go, by one rename, before they are deleted."""
        return self.root / ".trash"
