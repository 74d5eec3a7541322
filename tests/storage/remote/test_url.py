"""Which URLs name a remote, and that no secret gets into a message."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import pytest

from storage import RemoteError, RemoteURLError, Store, open_remote
from storage.recipe import Reference
from storage.remote.url import _aws

SECRET = "wJalrXUtnFEMI"
NOWHERE = Reference("features", "0" * 32)


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://my-bucket.of_mine/a/b=1/c+d/", "s3://my-bucket.of_mine/a/b=1/c+d"),
        ("file:///mnt/a%20folder/", "file:///mnt/a%20folder"),
        ("file://localhost/mnt/x", "file:///mnt/x"),
    ],
)
def test_urls(url, clean):
    remote = open_remote(url)
    assert (remote.url, repr(remote)) == (clean, f"Remote({clean!r})")
    assert remote is open_remote(url)
    assert remote.url_of("a/b") == f"{clean}/a/b"


@pytest.mark.parametrize(
    "url",
    [
        f"s3://AKIAIOSFODNN7:{SECRET}@bucket/prefix",
        f"s3://{SECRET}@bucket/prefix",
        f"s3://bucket/prefix?X-Amz-Signature={SECRET}",
        f"s3://bucket/prefix#{SECRET}",
        f"s3://AKIAIOSFODNN7:{SECRET}/bucket",
        f"s3://bucket/AKIA:{SECRET}",
        f"https://user:{SECRET}@host/bucket",
        f"https://bucket.example/{SECRET}",
        f"file://{SECRET}/x",
        f"s3://[{SECRET}",
        SECRET,
    ],
)
def test_what_may_hold_a_secret_is_refused_and_not_repeated(url):
    with pytest.raises(RemoteURLError) as caught:
        open_remote(url)
    shown: BaseException | None = caught.value
    while shown:
        assert SECRET not in str(shown)
        shown = shown.__cause__
    assert any(form in str(caught.value) for form in ("s3://", "file:///", "AWS_"))


@pytest.mark.parametrize(
    "url", ["", "s3://", "s3:///prefix", "s3://b", "s3://bucket/a/../b", "file:x", "gs://bucket"]
)
def test_what_is_no_remote_is_refused(url):
    with pytest.raises(RemoteURLError, match=r"given as (s3|file)://"):
        open_remote(url)


def test_a_folder_is_not_made(tmp_path):
    folder = tmp_path / "not mounted"
    store = Store(tmp_path / "store", remote=open_remote(folder.as_uri()))
    with pytest.raises(RemoteError, match=r"not%20mounted is no folder\. Make it, or mount it"):
        list(store.pull([NOWHERE]))
    assert not folder.exists()


@pytest.mark.parametrize("package", ["obstore", "botocore"])
def test_the_extra_is_named_where_it_is_missing(package, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else found(name)
    )
    with pytest.raises(RemoteURLError, match=rf"{package}, .*'cppcl\[object-storage\]'"):
        open_remote(f"s3://without-{package}")


class TestAWSConfiguration:
    @pytest.fixture(autouse=True)
    def nothing_set(self, tmp_path, monkeypatch) -> None:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))

    def test_environment(self, monkeypatch):
        for name, value in {
            "ACCESS_KEY_ID": "id",
            "SECRET_ACCESS_KEY": SECRET,
            "SESSION_TOKEN": "token",
            "REGION": "eu-west-3",
            "ENDPOINT_URL_S3": "https://minio.example",
        }.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        config, credentials = _aws()
        assert (config["region"], config["endpoint"]) == ("eu-west-3", "https://minio.example")
        assert self.keys(credentials) == ("id", SECRET, "token")

    def test_profile(self, tmp_path, monkeypatch):
        (tmp_path / "config").write_text(
            "[profile lab]\nregion = eu-north-1\nendpoint_url = https://ceph.example\n"
        )
        (tmp_path / "credentials").write_text(
            f"[lab]\naws_access_key_id = of-lab\naws_secret_access_key = {SECRET}\n"
        )
        monkeypatch.setenv("AWS_PROFILE", "lab")
        config, credentials = _aws()
        assert (config["region"], config["endpoint"]) == ("eu-north-1", "https://ceph.example")
        assert self.keys(credentials) == ("of-lab", SECRET, None)

    def test_a_profile_that_is_none(self, monkeypatch):
        monkeypatch.setenv("AWS_PROFILE", "absent")
        with pytest.raises(RemoteError, match=r"configuration cannot be used: .*absent"):
            _aws()

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("AWS_ENDPOINT_URL", "minio.example"),
            ("AWS_ENDPOINT_URL", f"https://user:{SECRET}@minio.example"),
            ("AWS_REGION", f"not a region {SECRET}"),
        ],
    )
    def test_a_value_of_another_form(self, name, value, monkeypatch):
        monkeypatch.setenv(name, value)
        with pytest.raises(RemoteError, match=f"{name} is not of its form$") as caught:
            _aws()
        assert SECRET not in str(caught.value)

    def test_no_credentials(self):
        with pytest.raises(RemoteError, match=r"no credentials: set AWS_ACCESS_KEY_ID and"):
            _aws()

    def test_a_bucket_open_to_everyone(self, monkeypatch):
        monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
        assert _aws()[1] is None

    def keys(self, credentials: Any) -> tuple[str, str, str | None]:
        given = credentials()
        return given["access_key_id"], given["secret_access_key"], given["token"]
