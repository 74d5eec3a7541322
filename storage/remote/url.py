"""The remote that a URL names; credentials come from the same places as for AWS's own tools."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from storage.errors import RemoteError, RemoteURLError
from storage.remote.objects import Remote

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig, S3Config, S3Credential

FORMS = "s3://BUCKET/PREFIX or file:///FOLDER"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
_SEGMENT = re.compile(r"[A-Za-z0-9_=+-][A-Za-z0-9_.=+-]*")
_ENDPOINT = re.compile(r"https?://[A-Za-z0-9_.:\[\]-]+(/[A-Za-z0-9_./-]*)?")
_REGION = re.compile(r"[A-Za-z0-9-]+")
_CREDENTIALS_STAY = timedelta(minutes=5)  # botocore renews them sooner than they end


@functools.cache
def open_remote(url: str) -> Remote:
    """Return the remote of a URL, without connecting to it yet.

    Parameters
    ----------
    url : str
        ``s3://BUCKET/PREFIX`` or ``file:///FOLDER``.

    Raises
    ------
    RemoteURLError
        It is no such URL, may hold a secret, or needs a package that is not installed.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise RemoteURLError(f"the URL of a remote cannot be read; give {FORMS}") from error
    # What may hold a secret is not repeated in a message.
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise RemoteURLError(
            "the URL of a remote must hold no user, password, '?' or '#': give credentials as "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        )
    if parts.scheme not in _SCHEMES:
        raise RemoteURLError(f"a remote is given as {FORMS}, not as {parts.scheme or 'a word'!r}")
    clean, connect = _SCHEMES[parts.scheme](parts)
    missing = [m for m in ("obstore", "botocore") if importlib.util.find_spec(m) is None]
    if missing:
        raise RemoteURLError(
            f"{clean} needs the package {missing[0]}, which is not installed: "
            "pip install 'cppcl[object-storage]'"
        )
    return Remote(clean, connect)


def _file(parts: SplitResult) -> tuple[str, Callable[[], ObjectStore]]:
    folder = Path(unquote(parts.path))
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise RemoteURLError("a folder is given as file:///FOLDER, with three slashes")
    url = folder.as_uri()

    def connect() -> ObjectStore:
        from obstore.store import LocalStore

        if not folder.is_dir():  # not made here: what is not mounted must not be filled
            raise RemoteError(f"{url} is no folder. Make it, or mount it.")
        return LocalStore(folder)

    return url, connect


def _s3(parts: SplitResult) -> tuple[str, Callable[[], ObjectStore]]:
    bucket, segments = parts.netloc, [s for s in parts.path.split("/") if s]
    if not _BUCKET.fullmatch(bucket) or not all(map(_SEGMENT.fullmatch, segments)):
        raise RemoteURLError(
            "a bucket is given as s3://BUCKET/PREFIX, in letters, digits, '-', '_' and '.', in "
            "the prefix '=', '+' and '/' too"
        )

    def connect() -> ObjectStore:
        from obstore.store import S3Store

        config, credentials = _aws()
        retry: RetryConfig = {"max_retries": 1, "backoff": {"init_backoff": timedelta(seconds=1)}}
        client: ClientConfig = {
            "connect_timeout": timedelta(seconds=5),
            "read_timeout": timedelta(minutes=2),
            "timeout": timedelta(minutes=10),
            "allow_http": config.get("endpoint", "").startswith("http://"),
        }
        return S3Store(
            bucket,
            prefix="/".join(segments) or None,
            config=config,
            client_options=client,
            retry_config=retry,
            credential_provider=credentials,
        )

    return "/".join(["s3:/", bucket, *segments]), connect


def _aws() -> tuple[S3Config, Callable[[], S3Credential] | None]:
    """Region, endpoint and credentials by AWS's rules: environment, profile, role of a machine."""
    import botocore.exceptions
    import botocore.session
    from botocore.configprovider import ConfiguredEndpointProvider

    # S3 checks each object against its digest as it arrives.
    config: S3Config = {"checksum_algorithm": "sha256"}
    try:
        session = botocore.session.get_session()
        # botocore knows AWS_DEFAULT_REGION alone.
        if region := os.environ.get("AWS_REGION") or session.get_config_variable("region"):
            config["region"] = _checked("AWS_REGION", region, _REGION)
        endpoints = ConfiguredEndpointProvider(
            full_config=session.full_config,
            scoped_config=session.get_scoped_config(),
            client_name="s3",
        )
        if endpoint := endpoints.provide():
            config["endpoint"] = _checked("AWS_ENDPOINT_URL", endpoint, _ENDPOINT)
        if os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true"):
            return config, None
        credentials = session.get_credentials()
    except botocore.exceptions.BotoCoreError as error:
        raise RemoteError(f"AWS's configuration cannot be used: {error}") from error
    if credentials is None:
        raise RemoteError(
            "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "AWS_PROFILE (for a bucket open to everyone, AWS_SKIP_SIGNATURE=true)"
        )
    return config, functools.partial(_frozen, credentials)


def _checked(name: str, value: str, form: re.Pattern[str]) -> str:
    """Return a value of AWS's configuration; obstore ends the process on one of another form."""
    if not form.fullmatch(value):  # not shown: it may hold a password
        raise RemoteError(f"AWS's configuration cannot be used: {name} is not of its form")
    return value


def _frozen(credentials: Any) -> S3Credential:
    frozen = credentials.get_frozen_credentials()
    return {
        "access_key_id": frozen.access_key,
        "secret_access_key": frozen.secret_key,
        "token": frozen.token,
        "expires_at": datetime.now(UTC) + _CREDENTIALS_STAY,
    }


_SCHEMES = {"s3": _s3, "file": _file}
