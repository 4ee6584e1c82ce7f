"""The manifests, built as an operator builds them."""

import shutil
import subprocess

import pytest

from tests.kustomize import build
from tests.manifests import FOLDERS, INSTALLATIONS, ROOT


@pytest.fixture(scope="session")
def copied(tmp_path_factory):
    """k8s/ with secrets that were made as the pages say."""
    k8s = tmp_path_factory.mktemp("k8s") / "k8s"
    shutil.copytree(ROOT / "k8s", k8s, ignore=shutil.ignore_patterns("secrets.env"))
    for overlay in (k8s / "overlays").iterdir():
        made = subprocess.run([k8s / "make-secrets"], capture_output=True, check=True).stdout
        (overlay / "secrets.env").write_bytes(made)
    return k8s


@pytest.fixture(scope="session")
def built(copied):
    return {name: build(copied / name) for name in FOLDERS}


@pytest.fixture(params=INSTALLATIONS)
def installed(request, built):
    """All objects of one installation."""
    return [document for name in INSTALLATIONS[request.param] for document in built[name]]
