"""Remotes to test against: in memory, in a folder, and in buckets of an S3 server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import botocore.session
import obstore

from storage import Problem, Remote, Store

USER = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "unspoken"}
REGION = "eu-central-1"


@dataclass(frozen=True)
class Server:
    """An S3 server of its own process."""

    url: str
    process: subprocess.Popen[str]

    def environment(self) -> dict[str, str]:
        """Variables by which a process finds it."""
        return {**USER, "AWS_REGION": REGION, "AWS_ENDPOINT_URL": self.url}

    def make_bucket(self) -> str:
        """Make a bucket and return the URL of a remote in it."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        location = {"LocationConstraint": REGION}
        self._client.create_bucket(Bucket=name, CreateBucketConfiguration=location)
        return f"s3://{name}/some/prefix"

    @cached_property
    def _client(self) -> Any:
        return botocore.session.get_session().create_client(
            "s3",
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id=USER["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=USER["AWS_SECRET_ACCESS_KEY"],
        )

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


@contextmanager
def serving(**environment: str) -> Iterator[Server]:
    """Run a server on a free port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    reader = threading.Thread(target=process.stderr.read)
    try:
        said = ""
        while not (found := re.search(r"Running on (http://\S+)\n", said)):
            line = process.stderr.readline()
            assert line, f"the server did not start: {said}"
            said += line
        # It writes a line for every request, and would wait where nobody reads them.
        reader.start()
        yield Server(found.group(1), process)
    finally:
        with process:
            process.kill()
            if reader.ident:
                reader.join()


def objects(remote: Remote) -> dict[str, bytes]:
    """Every object of a remote."""
    names = [entry["path"] for part in obstore.list(remote._objects) for entry in part]
    return {name: bytes(obstore.get(remote._objects, name).bytes()) for name in names}


def problems_there(store: Store) -> list[Problem]:
    """Everything that is wrong in the remote of a store."""
    return [problem for _, problems in store.verify_remote() for problem in problems]
