# The two commands: `make demo` (see it work) and `make test` (all checks, all tests).
# Both need Python >= 3.11 and nothing else; they make .venv, install what constraints.txt pins, and find a browser.

# Choose a Python: make test PYTHON=python3.12
PYTHON ?=
# Where else pip looks for torch: PyTorch's own CPU wheel index keeps the environment small, see pytorch.org/get-started.
TORCH_INDEX ?=
# How many processes `make test` runs tests in; 0: none but its own, one test after the other. Tests wait for pages, disks
# and processes for half of their time: two of them use one core.
PROCESSES ?= 3
# Options of the demo or a benchmark: make demo ARGS=--keep, make bench-retrieval ARGS="--split test"
ARGS ?=
# Where `make ui-check` leaves pictures of every view.
PICTURES ?= build/ui-pictures
# Where `make demo` leaves its store and its screenshot.
DEMO_OUTPUT ?= demo-output

# Where `make manifests-here` keeps kubectl and the models of operators.
MANIFEST_TOOLS ?= $(CURDIR)/build/manifest-tools

# Tests without browser, Ray, network, and checks of the repository itself.
PURE_CORE := $(addprefix tests/unit/,index pipeline serve waygraph)

# Tests, the demo and benchmarks start many processes. Where the environment forbids bytecode, each of them would compile
# all that it imports: seven seconds more for a process that loads a model.
export PYTHONDONTWRITEBYTECODE :=

PYTHONS := python3 python3.13 python3.12 python3.11
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed-by-make
BENCHES := bench-explore bench-coverage bench-leads bench-politeness bench-search bench-paths bench-retrieval bench-journal bench-likeness bench-encode bench-refresh bench-scale

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-extended check check-types check-format check-layers check-docstrings check-site coverage site lint ui ui-check screenshots clean browser \
	images-here policies-here alerts-here manifests-here buckets-here \
	soak-crash soak-workers soak-explore soak-kills soak-heavy soak-refresh soak-refresh-kills soak-cluster \
	soak-teleports soak-truth soak-runner soak-search soak-properties soak-day $(BENCHES)

help:
	@echo "make demo    index, serve, search and walk a bundled site, from nothing (ARGS=--keep leaves it running)"
	@echo "make test    all checks and all tests but the extended ones (EXTENDED=1: and these, as CI does)"
	@echo "make test-fast  tests of the pure core only: no browser, no Ray, no network"
	@echo "make test-extended  tests that kill processes and machines, repeat runs under other conditions, explore catalogues"
	@echo "make check   lint, format, types, layers, docstrings, documentation site"
	@echo "make coverage  all tests with a coverage report"
	@echo "make lint    format the code and fix what ruff can fix"
	@echo "make site    build the documentation site into site/"
	@echo "make ui      build the page of the service into serve/ui/built (needs Node 20)"
	@echo "make ui-check  build the page, open every view in a browser, check accessibility with axe-core (pictures: PICTURES=DIR)"
	@echo "make screenshots  make the pictures of the page in docs/images again"
	@echo "make $(firstword $(BENCHES)) and so on ($(BENCHES)): benchmarks, one command each"
	@echo "make images-here   build the container images without a registry and try them (root; Debian: debootstrap buildah podman skopeo runc)"
	@echo "make policies-here try the network policies with nftables between network namespaces (root; Debian: nftables)"
	@echo "make alerts-here   check and test the alerts with promtool (Debian: prometheus)"
	@echo "make manifests-here compare the manifests with kubectl's kustomize and with the schemas of operators"
	@echo "make buckets-here  run the tests of buckets on Ceph's object gateway (root; Debian: ceph-mon ceph-osd radosgw)"
	@echo "make soak-crash    kill the indexer 20 times and check that nothing is lost"
	@echo "make soak-workers  explore 5 times with 1, 2 and 4 workers and compare the graphs"
	@echo "make soak-explore  explore 10,000 pages, kill the browser 10 times, watch memory and processes"
	@echo "make soak-kills    kill browser, driver, explorer, coordinator 50 times and compare the map"
	@echo "make soak-heavy    explore pages of 100,000 elements and of 50 MB"
	@echo "make soak-refresh  change a site in 30 random ways and compare refreshed with fresh maps"
	@echo "make soak-refresh-kills  kill waygraph refresh 20 times and check that nothing is lost"
	@echo "make soak-cluster  kill machines of a Ray cluster on this host, pull their cables, cut the head's power"
	@echo "make soak-teleports  walk 200 random ways through the demo shop in a browser"
	@echo "make soak-truth   walk every edge of the demo shop's ground truth with code of its own (after changes of either)"
	@echo "make soak-runner  kill waygraph run 10 times and check that no task is lost or done twice"
	@echo "make soak-search  30 destructive traps, 20 replays of one recording, a search killed at each of its requests"
	@echo "make soak-properties  try 2,000 random examples on each property of the pure core"
	@echo "make soak-day  service, refresh and agents through 20 minutes of kills, a full disk, a moved clock (root; Debian: prometheus tini gcc)"
	@echo "make clean   remove what these commands made"

demo: $(INSTALLED) browser
	@$(BIN)/waygraph demo --output $(DEMO_OUTPUT) $(ARGS)

# EXTENDED=1 runs the extended tests in the same run: all is imported once, and no process waits for the last file twice.
test: check browser
	$(BIN)/pytest -n $(PROCESSES) --dist loadfile $(if $(EXTENDED),,-m "not extended") --durations=25
	@echo "All checks passed."

# Tests that kill processes and machines, that repeat runs under other conditions (store, profile, order, encoder), that
# install a wheel, and that explore catalogues: crawler traps, frameworks, event handlers, lists, replaced globals, pages
# that differ on every load.
test-extended: $(INSTALLED) browser
	$(BIN)/pytest -n $(PROCESSES) --dist loadfile -m extended --durations=25

test-fast: $(INSTALLED)
	$(BIN)/pytest -n $(PROCESSES) --dist loadfile -m "not extended and not s3" $(PURE_CORE)

# Two at a time: the types take as long as all others together.
check: $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs 2 check-format check-types check-layers check-docstrings check-site

check-types:
	$(BIN)/mypy
check-format:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
check-layers:
	$(BIN)/lint-imports
check-docstrings:
	$(BIN)/pydoclint --quiet waygraph index pipeline serve
check-site:
	$(BIN)/mkdocs build --strict --quiet --site-dir site

coverage: $(INSTALLED) browser
	$(BIN)/pytest -n $(PROCESSES) --dist loadfile --cov=waygraph --cov-report=term:skip-covered

lint: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

site: $(INSTALLED)
	$(BIN)/mkdocs build --strict --site-dir site

# Only who changes serve/ui/src needs this: the build is committed.
ui:
	@command -v npm >/dev/null || { echo "error: npm is not installed; it comes with Node 20 or newer" >&2; exit 6; }
	cd serve/ui && npm ci --no-audit --no-fund && npm run build

# The flows of the page in a browser, with axe-core and a site of others, which come from the npm registry.
ui-check: $(INSTALLED) browser ui
	WAYGRAPH_AXE=1 WAYGRAPH_UI_SITES=1 WAYGRAPH_PICTURES=$(abspath $(PICTURES)) $(BIN)/pytest -n 0 tests/unit/serve/ui \
		tests/integration/test_page.py tests/integration/test_report_page.py tests/integration/test_page_flows.py

screenshots: $(INSTALLED) browser
	$(BIN)/python -m bench.ui_pictures $(ARGS)
	$(BIN)/python -m bench.demo_picture

images-here: $(INSTALLED)
	$(BIN)/python -m bench.images $(ARGS)

policies-here: $(INSTALLED)
	WAYGRAPH_POLICIES=1 $(BIN)/pytest -n 0 tests/integration/test_network_policies.py

# kubectl comes from PyPI, the operator's types from npm.
manifests-here: $(INSTALLED)
	$(BIN)/python -m bench.manifest_tools $(MANIFEST_TOOLS)
	PATH="$(MANIFEST_TOOLS)/bin:$$PATH" WAYGRAPH_MANIFEST_TOOLS="$(MANIFEST_TOOLS)" $(BIN)/pytest -n 0 tests/unit/k8s

buckets-here: $(INSTALLED)
	$(BIN)/python -m bench.object_gateway $(BIN)/pytest -n 0 tests/integration/test_store_s3_crash.py \
		tests/unit/index/store -k "s3 or bucket"

alerts-here: $(INSTALLED)
	@command -v promtool >/dev/null || { echo "error: promtool is missing: apt-get install prometheus" >&2; exit 6; }
	$(BIN)/pytest -n 0 tests/unit/k8s/test_alerts.py tests/unit/k8s/test_monitoring.py

soak-crash: $(INSTALLED) browser
	WAYGRAPH_KILLS=20 $(BIN)/pytest -n 0 tests/e2e/test_kill9.py

soak-workers: $(INSTALLED) browser
	WAYGRAPH_RUNS=5 $(BIN)/pytest -n 0 tests/integration/test_explore_demo_shop.py -k workers

soak-explore: $(INSTALLED) browser
	$(BIN)/python -m bench.soak

soak-kills: $(INSTALLED) browser
	$(BIN)/python -m bench.kills

soak-heavy: $(INSTALLED) browser
	WAYGRAPH_HEAVY=1 $(BIN)/pytest tests/integration/test_explore_traps.py -k weight

soak-refresh: $(INSTALLED) browser
	WAYGRAPH_MUTATIONS=30 $(BIN)/pytest -n 0 -s --hypothesis-profile=soak tests/integration/test_refresh.py -k fresh_crawl

soak-refresh-kills: $(INSTALLED) browser
	WAYGRAPH_KILLS=20 $(BIN)/pytest -n 0 tests/e2e/test_refresh_kill9.py

soak-cluster: $(INSTALLED)
	WAYGRAPH_LOSSES=$${WAYGRAPH_LOSSES:-20} $(BIN)/pytest -n 0 -s tests/integration/test_cluster.py \
		tests/integration/test_cluster_network.py -k repeatedly

soak-runner: $(INSTALLED) browser
	WAYGRAPH_KILLS=10 $(BIN)/pytest -n 0 tests/e2e/test_run_kill9.py

soak-search: $(INSTALLED) browser
	WAYGRAPH_TRAPS=all WAYGRAPH_RUNS=20 WAYGRAPH_KILLS=all $(BIN)/pytest -n 0 tests/integration/test_tree_search_changes.py \
		tests/integration/test_tree_search_models.py tests/e2e/test_search_kill9.py

soak-truth: $(INSTALLED) browser
	WAYGRAPH_TRUTH=1 $(BIN)/pytest -n 0 tests/integration/test_demo_site.py -k ground_truth

soak-teleports: $(INSTALLED) browser
	WAYGRAPH_TELEPORTS=200 $(BIN)/pytest -n 0 tests/integration/test_teleport.py -k random

soak-properties: $(INSTALLED)
	WAYGRAPH_EXAMPLES=$${WAYGRAPH_EXAMPLES:-2000} $(BIN)/pytest -n $(PROCESSES) --hypothesis-profile=soak -m hypothesis tests/unit

soak-day: $(INSTALLED) browser
	$(BIN)/python -m bench.day $(ARGS)

$(BENCHES): bench-%: $(INSTALLED) browser
	$(BIN)/python -m bench.$* $(ARGS)

# Says which browser will be used; installs one when there is none.
browser: $(INSTALLED)
	@path="$$($(BIN)/python -m waygraph.cli.install_browser)" && echo "browser: $$path"

# Anew only when the dependencies changed; what already fits is left alone. Without --no-compile pip compiles all modules of
# all packages, which takes a minute; Python compiles those that it imports.
$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/pip
	@echo "installing what constraints.txt pins (minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -e '.[all]'
	@touch $@

$(BIN)/pip:
	@for candidate in $(or $(PYTHON),$(PYTHONS)); do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python="$$candidate"; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "error: no Python >= 3.11 found (tried: $(or $(PYTHON),$(PYTHONS)))." >&2; \
		echo "  hint: install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 6; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "error: $$python cannot make virtual environments." >&2; \
		echo "  hint: on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 6; \
	fi; \
	echo "making $(VENV) with $$python"; \
	"$$python" -m venv $(VENV)

clean:
	rm -rf $(VENV) $(DEMO_OUTPUT) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
