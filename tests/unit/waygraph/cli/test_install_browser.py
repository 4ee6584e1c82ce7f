"""Installation of a browser: order of the attempts, time limits and hints."""

import subprocess
import sys

import pytest

from waygraph.cli import install_browser
from waygraph.cli.install_browser import InstallPlatform, manual_hint, parse_systems, plan_attempts, run
from waygraph.core.errors import BrowserMissing

DEBIAN_ROOT = InstallPlatform(("debian",), has_apt=True, root=())
DEBIAN_SUDO = InstallPlatform(("debian",), has_apt=True, root=("/usr/bin/sudo", "-n"))
DEBIAN_USER = InstallPlatform(("debian",), has_apt=True, root=None)
UBUNTU_ROOT = InstallPlatform(("ubuntu", "debian"), has_apt=True, root=())
FEDORA_ROOT = InstallPlatform(("fedora",), has_apt=False, root=())


APT = "apt-get -o DPkg::Lock::Timeout=300"


def words(machine):
    return [" ".join(line) for attempt in plan_attempts(machine, python="py") for line in attempt.commands]


def test_on_debian_playwright_comes_first_then_the_headless_shell_then_chromium():
    assert words(DEBIAN_ROOT) == [
        "py -m playwright install --with-deps chromium-headless-shell",
        f"{APT} update",
        f"{APT} install -y --no-install-recommends chromium-headless-shell",
        f"{APT} update",
        f"{APT} install -y --no-install-recommends chromium",
    ]


def test_sudo_is_used_only_without_a_password():
    assert f"/usr/bin/sudo -n {APT} install -y --no-install-recommends chromium" in words(DEBIAN_SUDO)
    assert words(DEBIAN_USER) == ["py -m playwright install chromium-headless-shell"]


def test_ubuntus_snap_package_is_never_installed():
    assert words(UBUNTU_ROOT) == ["py -m playwright install --with-deps chromium-headless-shell"]


def test_elsewhere_only_playwright_is_tried():
    assert words(FEDORA_ROOT) == ["py -m playwright install --with-deps chromium-headless-shell"]


@pytest.mark.parametrize("machine", [DEBIAN_USER, UBUNTU_ROOT, FEDORA_ROOT])
def test_the_hint_names_a_command_and_the_setting(machine):
    hint = manual_hint(machine)
    assert "playwright install --with-deps chromium-headless-shell" in hint
    assert "WAYGRAPH_BROWSER__EXECUTABLE" in hint
    assert ("apt-get install chromium-headless-shell" in hint) == (machine is DEBIAN_USER)


def test_systems_are_read_from_os_release():
    assert parse_systems('NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n') == (
        "linuxmint",
        "ubuntu",
        "debian",
    )
    assert parse_systems("") == ()


def test_the_output_of_an_installer_is_printed(capfd):
    assert run([sys.executable, "-c", "print('50% of it')"], {})
    assert "50% of it" in capfd.readouterr().err


def test_an_installer_that_fails_is_not_success():
    assert not run([sys.executable, "-c", "raise SystemExit(3)"], {})


def test_an_installer_that_does_not_exist_is_not_success(capfd):
    assert not run(["/nonexistent/apt-get"], {})
    assert "No such file" in capfd.readouterr().err


def test_an_installer_without_output_is_killed_with_its_children(capfd):
    # The child of the installer holds the pipe open; only killing the whole group ends it.
    script = (
        "import subprocess, sys;"
        "p = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE);"
        "print(p.pid, flush=True); p.wait()"
    )
    assert not run([sys.executable, "-c", script], {}, silence_seconds=1.0)
    output = capfd.readouterr().err
    assert "no output for 1 s" in output
    child = output.split()[0]
    state = subprocess.run(["ps", "-o", "stat=", "-p", child], capture_output=True, text=True, check=False).stdout
    assert state.strip() in {"", "Z", "ZN"}  # gone, or dead and not yet collected by init


def test_with_a_browser_nothing_is_installed(monkeypatch):
    monkeypatch.setattr(install_browser, "_find_path", lambda: "/opt/browser")
    monkeypatch.setattr(install_browser, "run", lambda *_: pytest.fail("installed something"))
    assert install_browser.install(DEBIAN_ROOT) == "/opt/browser"


def test_the_next_attempt_follows_a_failed_one(monkeypatch):
    ran = []

    def fake_run(line, environment):
        ran.append(line)
        return line[0] == "apt-get"

    monkeypatch.setattr(install_browser, "_find_path", lambda: "/usr/bin/shell" if len(ran) == 3 else None)
    monkeypatch.setattr(install_browser, "run", fake_run)
    assert install_browser.install(DEBIAN_ROOT) == "/usr/bin/shell"
    assert [line[0] for line in ran] == [sys.executable, "apt-get", "apt-get"]


def test_browser_of_an_installer_that_failed_is_used(monkeypatch):
    ran = []
    monkeypatch.setattr(install_browser, "_find_path", lambda: "/usr/bin/shell" if len(ran) == 3 else None)
    monkeypatch.setattr(install_browser, "run", lambda line, _: bool(ran.append(line)))
    assert install_browser.install(DEBIAN_ROOT) == "/usr/bin/shell"
    assert [line[0] for line in ran] == [sys.executable, "apt-get", "apt-get"]


def test_if_all_attempts_fail_the_error_says_what_to_run(monkeypatch):
    monkeypatch.setattr(install_browser, "_find_path", lambda: None)
    monkeypatch.setattr(install_browser, "run", lambda *_: False)
    with pytest.raises(BrowserMissing, match="none could be installed") as raised:
        install_browser.install(DEBIAN_ROOT)
    assert "apt-get install chromium-headless-shell" in raised.value.hint
