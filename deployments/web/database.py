"""What people answered on a page, on disk: an SQLite file that survives its writer's death."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from cppcl.errors import CppclError, InputError

BUSY_SECONDS = 10


class ExperimentDatabase:
    """A file of what people said about the pictures of one experiment.

    Whatever a method writes is synchronised to the disk before it returns. Any number of threads
    and processes may use a file at the same time.

    Parameters
    ----------
    path : Path
        File, made if it is not there.
    experiment : str
        Whose pictures it is about.

    Attributes
    ----------
    application : int
        Of the kind of file, where `file` and SQLite look for it.
    format : int
        Raised whenever the tables change.
    schema : str
        Statements that make the tables, beside that of the owner.

    Raises
    ------
    InputError
        The file is no such database, or is about another experiment.
    CppclError
        It cannot be opened or written.
    """

    application: ClassVar[int]
    format: ClassVar[int] = 1
    schema: ClassVar[str]

    def __init__(self, path: Path, experiment: str) -> None:
        self.path = path
        self._lock = threading.RLock()
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        try:
            with self._explained():
                self._prepare(experiment)
            self._check_owner(experiment)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _prepare(self, experiment: str) -> None:
        run = self._connection.execute
        (application,) = run("PRAGMA application_id").fetchone()
        (tables,) = run("SELECT count(*) FROM sqlite_schema").fetchone()
        if application not in (0, self.application) or (application == 0 and tables):
            raise InputError(f"--database {self.path}: a database of another program")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        with self._writing():
            # Another process may have made the tables since.
            (tables,) = run("SELECT count(*) FROM sqlite_schema").fetchone()
            if tables:
                return
            run(f"PRAGMA application_id = {self.application}")
            run(f"PRAGMA user_version = {self.format}")
            run("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT")
            for statement in self.schema.split(";\n"):
                run(statement)
            run("INSERT INTO about VALUES ('experiment', ?)", (experiment,))

    def _check_owner(self, experiment: str) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version != self.format:
            raise InputError(
                f"--database {self.path}: has format {version}, and this version of cppcl reads "
                f"{self.format}; use the version that wrote it to export, and import that"
            )
        (owner,) = self._connection.execute(
            "SELECT value FROM about WHERE name = 'experiment'"
        ).fetchone()
        if owner != experiment:
            raise InputError(
                f"--database {self.path}: holds answers of the experiment {owner!r}, not of "
                f"{experiment!r}; give another file"
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock, self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise CppclError(
                f"--database {self.path}: cannot be read or written ({error}); check the folder, "
                "its permissions and free space, and that no other program holds the file"
            ) from error
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"--database {self.path}: no database, or damaged ({error}); give another file"
            ) from error
        except OSError as error:
            raise CppclError(f"--database {self.path}: cannot be made ({error})") from error
