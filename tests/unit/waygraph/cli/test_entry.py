"""Every command line ends with one message and a documented exit code."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from waygraph.cli import app as cli_app
from waygraph.cli import entry, main
from waygraph.core import errors


@pytest.fixture
def raising(monkeypatch):
    """A command line whose only command raises what the test says."""

    def install(error):
        program = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)

        @program.command()
        def ask(as_json: bool = typer.Option(False, "--json")):
            raise error

        built = typer.main.get_command(program)
        monkeypatch.setattr(cli_app, "command", lambda: built)

    return install


def every_error():
    kinds = [errors.WaygraphError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return [kind for kind in kinds if kind.__module__ == "waygraph.core.errors"]


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_every_error_is_one_message_with_its_hint_and_its_exit_code(raising, capsys, kind):
    raising(kind("The thing broke.", hint="Mend it."))
    assert main([]) == kind.exit_code
    out, err = capsys.readouterr()
    assert (out, err) == ("", "error: The thing broke.\n  hint: Mend it.\n")


def test_with_json_the_error_is_valid_json_on_stdout(raising, capsys):
    raising(errors.NotFound("No such site.", hint="waygraph sites"))
    assert main(["--json"]) == 3
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "error": {
            "type": "not-found",
            "title": "Not found",
            "message": "No such site.",
            "hint": "waygraph sites",
            "exit_code": 3,
        }
    }
    assert "No such site." in err


def test_page_text_in_an_error_cannot_control_the_terminal(raising, capsys):
    raising(errors.NotFound("No state '\x1b[2J\x9b31mred'."))
    main([])
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\x9b" not in err


def test_unexpected_exception_gives_one_line_without_a_traceback(raising, capsys, monkeypatch):
    monkeypatch.delenv("WAYGRAPH_DEBUG", raising=False)
    raising(RuntimeError("surprise"))
    assert main([]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: Unexpected RuntimeError: surprise\n")
    assert "Traceback" not in err


def test_debug_mode_shows_the_traceback(raising, capsys, monkeypatch):
    monkeypatch.setenv("WAYGRAPH_DEBUG", "1")
    raising(RuntimeError("surprise"))
    assert main([]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_ends_with_130(raising, capsys):
    raising(KeyboardInterrupt())
    assert main([]) == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("module", "extra"), [("torch", "torch"), ("ray", "index"), ("fastapi", "serve")])
def test_a_missing_extra_says_what_to_install(raising, capsys, module, extra):
    raising(ModuleNotFoundError(f"No module named '{module}'", name=module))
    assert main([]) == 6
    assert f"pip install 'waygraph[{extra}]'" in capsys.readouterr().err


def test_an_unknown_import_error_is_not_blamed_on_an_extra():
    error = entry.missing_extra(ModuleNotFoundError("No module named 'nonsense'", name="nonsense"))
    assert "nonsense" in error.message
    assert "Reinstall" in error.hint


@pytest.mark.parametrize("words", [["frobnicate"], ["search"], ["search", "x", "y", "-k", "0"], ["--nope"]])
def test_a_wrong_command_line_is_exit_code_2_and_points_to_help(capsys, words):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "--help" in err


def test_a_store_and_a_service_together_are_refused(capsys):
    assert main(["search", "a.example", "q", "--store", "maps", "--url", "http://127.0.0.1:1"]) == 2
    assert "--url" in capsys.readouterr().err


def test_an_invalid_setting_is_named(capsys, monkeypatch):
    monkeypatch.setenv("WAYGRAPH_EXPLORE__DEPTH", "deep")
    assert main(["doctor"]) == 2
    assert "explore.depth" in capsys.readouterr().err


def test_a_settings_file_that_is_not_json_is_invalid_input(capsys, monkeypatch, tmp_path):
    broken = tmp_path / "waygraph.json"
    broken.write_text("{")
    monkeypatch.setenv("WAYGRAPH_CONFIG", str(broken))
    assert main(["doctor"]) == 2
    assert "WAYGRAPH_CONFIG" in capsys.readouterr().err


def test_no_arguments_show_the_help(capsys):
    assert main([]) == 0
    assert "Commands:" in capsys.readouterr().out


def commands():
    return list(cli_app.command().commands)


def test_help_lists_all_commands_in_order():
    expected = (
        "index runs login search path navigate teleport sites show tools report export rm refresh history diff"
        " rollback gc reencode describe serve mcp do run score doctor demo store keys tasks"
    )
    assert commands() == expected.split()


@pytest.mark.parametrize("name", commands())
def test_the_help_of_every_command_has_an_example(capsys, name):
    assert main([name, "--help"]) == 0
    help_text = capsys.readouterr().out
    assert "Example" in help_text
    assert f"\n    waygraph {name}" in help_text


def test_a_closed_pipe_causes_no_traceback():
    # The pipe's read end is closed before anything is written to it.
    program = (
        "import os, sys; r, w = os.pipe(); os.close(r); os.dup2(w, 1);"
        "from waygraph.cli import main; sys.exit(main(['--help']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ""


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from waygraph.cli import main; main(['search', '--help']);"
        "print([m for m in ('torch', 'ray', 'pyarrow', 'numpy', 'playwright', 'fastapi') if m in sys.modules],"
        " file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_output_goes_to_the_current_stdout(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    main(["--version"])
    assert stream.getvalue().startswith("waygraph ")


ENDING = """import atexit, ctypes, sys, tempfile, threading, time
libc = ctypes.CDLL(None)
libc.__cxa_atexit(libc.abort, None, None)  # what a destructor of a compiled library does now and then
from waygraph import cli
def run():
    global folder
    folder = tempfile.TemporaryDirectory()
    atexit.register(print, "handler")
    print(folder.name)
    threading.Thread(target=lambda: (time.sleep(0.05), print("thread"))).start()
    return {code}
cli.main = run
cli.console()
"""


@pytest.mark.parametrize("code", [0, 3])
def test_a_process_ends_in_order_with_its_code_whatever_compiled_libraries_do_at_exit(code):
    done = subprocess.run(
        [sys.executable, "-c", ENDING.replace("{code}", str(code))], capture_output=True, text=True, check=False
    )
    folder, *printed = done.stdout.splitlines()
    assert (done.returncode, printed, done.stderr) == (code, ["thread", "handler"], "")
    assert not Path(folder).exists()


def test_an_exception_that_is_nobodys_ends_the_process_as_python_does():
    script = "from waygraph import cli\ndef run(): raise SystemExit(7)\ncli.main = run\ncli.console()"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 7
