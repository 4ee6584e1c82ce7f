"""Small applications on WebSocket and POST frameworks from PyPI, for the benchmark of what visits send.

Each shows a greenhouse: a table, further pages or tabs that read, and buttons that write into `greenhouse.json`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.real_sites import Served, run, serving
from tests.sites.server import free_port

PACKAGES = ("streamlit==1.67.0", "nicegui==3.18.0", "gradio==6.31.0")

_DATA = '{"watered": 0, "pump": "off"}'

_STREAMLIT = """
import json, pathlib
import streamlit as st

store = pathlib.Path("greenhouse.json")
data = json.loads(store.read_text())
st.title("Greenhouse")
overview, history, settings = st.tabs(["Overview", "History", "Settings"])
with overview:
    st.table([{"plant": "Tomato", "moisture": 41}, {"plant": "Basil", "moisture": 63}])
    if st.button("Water the plants"):
        data["watered"] += 1
        store.write_text(json.dumps(data))
        st.success("Watered")
with history:
    st.write("Watered on Monday and on Thursday.")
with settings:
    if st.checkbox("Pump") != (data["pump"] == "on"):
        data["pump"] = "on"
        store.write_text(json.dumps(data))
with st.expander("About the sensors"):
    st.write("Two sensors, read every hour.")
"""

_NICEGUI = """
import json, os, pathlib
from nicegui import ui

store = pathlib.Path("greenhouse.json")

def water():
    data = json.loads(store.read_text())
    data["watered"] += 1
    store.write_text(json.dumps(data))
    ui.notify("Watered")

def frame(title):
    with ui.header():
        for name, to in (("Overview", "/"), ("History", "/history"), ("Sensors", "/sensors")):
            ui.link(name, to).classes("text-white")
    ui.label(title).classes("text-h4")

@ui.page("/")
def overview():
    frame("Greenhouse")
    ui.table(rows=[{"plant": "Tomato", "moisture": 41}, {"plant": "Basil", "moisture": 63}])
    ui.button("Water the plants", on_click=water)
    with ui.dialog() as dialog, ui.card():
        ui.label("Two sensors, read every hour.")
    ui.button("About the sensors", on_click=dialog.open)

@ui.page("/history")
def history():
    frame("History")
    ui.label("Watered on Monday and on Thursday.")

@ui.page("/sensors")
def sensors():
    frame("Sensors")
    with ui.tabs() as tabs:
        one, two = ui.tab("North"), ui.tab("South")
    with ui.tab_panels(tabs, value=one):
        with ui.tab_panel(one):
            ui.label("The northern sensor is dry.")
        with ui.tab_panel(two):
            ui.label("The southern sensor is wet.")

ui.run(host="127.0.0.1", port=int(os.environ["PORT"]), show=False, reload=False, title="Greenhouse")
"""

_GRADIO = """
import json, os, pathlib
import gradio as gr

store = pathlib.Path("greenhouse.json")

def rows():
    return [["Tomato", 41], ["Basil", 63]]

def water():
    data = json.loads(store.read_text())
    data["watered"] += 1
    store.write_text(json.dumps(data))
    return "Watered"

with gr.Blocks(title="Greenhouse") as app:
    gr.Markdown("# Greenhouse")
    with gr.Tab("Overview"):
        table = gr.Dataframe(headers=["plant", "moisture"])
        said = gr.Textbox(label="Result")
        gr.Button("Water the plants").click(water, outputs=said)
    with gr.Tab("History"):
        gr.Markdown("Watered on Monday and on Thursday.")
    with gr.Accordion("About the sensors", open=False):
        gr.Markdown("Two sensors, read every hour.")
    app.load(rows, outputs=table)
app.launch(server_name="127.0.0.1", server_port=int(os.environ["PORT"]), quiet=True)
"""


@contextmanager
def _served(scratch: Path, name: str, program: str, *command: str) -> Iterator[Served]:
    root = scratch / "apps"
    python = root / "venv" / "bin" / "python"
    if not (root / "installed").exists():
        root.mkdir(exist_ok=True)
        run(sys.executable, "-m", "venv", "venv", cwd=root)
        run(python, "-m", "pip", "install", "--quiet", *PACKAGES, cwd=root)
        (root / "installed").touch()
    work = root / name
    work.mkdir(exist_ok=True)
    (work / "app.py").write_text(program)
    (work / "greenhouse.json").write_text(_DATA)
    port, log = free_port(), scratch / f"{name}.log"
    env = os.environ | {
        "PORT": str(port),
        "HOME": str(work),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
    }
    with serving(python, *(word.format(port=port) for word in command), cwd=work, port=port, log=log, env=env) as url:
        yield Served(url, log, contents=(work / "greenhouse.json").read_text)


@contextmanager
def streamlit(scratch: Path) -> Iterator[Served]:
    """Serve an application that sends and gets everything as binary messages over one WebSocket."""
    options = ("--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true")
    with _served(
        scratch, "streamlit", _STREAMLIT, "-m", "streamlit", "run", "app.py", *options,
        "--browser.gatherUsageStats=false",
    ) as served:  # fmt: skip
        yield served


@contextmanager
def nicegui(scratch: Path) -> Iterator[Served]:
    """Serve an application whose pages are kept up to date over socket.io."""
    with _served(scratch, "nicegui", _NICEGUI, "app.py") as served:
        yield served


@contextmanager
def gradio(scratch: Path) -> Iterator[Served]:
    """Serve an application that calls its functions by POST, also when a page loads."""
    with _served(scratch, "gradio", _GRADIO, "app.py") as served:
        yield served
