# One image for everything: `waygraph index`, `waygraph serve`, and the Ray nodes of a KubeRay cluster (k8s/).
# Written for Debian's own headless Chromium, which needs half the CPU of full Chromium.
FROM python:3.11-slim-bookworm

# fonts: pages look as on a desktop. tini: browsers leave processes behind, somebody has to collect them.
# wget: KubeRay asks its nodes for their health with it.
RUN apt-get update \
    && apt-get install -y --no-install-recommends chromium-headless-shell fonts-liberation fonts-noto-core tini wget \
    && rm -rf /var/lib/apt/lists/*

# Where else pip looks for torch. Give PyTorch's own CPU wheel index here (see pytorch.org/get-started): without it
# pip takes the build with CUDA, several gigabytes that only GPU nodes need.
ARG TORCH_INDEX=""

WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY waygraph waygraph
COPY index index
COPY pipeline pipeline
COPY serve serve
RUN pip install --no-cache-dir -c constraints.txt \
        ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} '.[serve,weights]' \
    && useradd --uid 10001 --create-home waygraph \
    && mkdir /maps \
    && chown waygraph /maps

USER 10001
# The user's own folder, not /app: Python must import the installed packages, not the sources beside them.
WORKDIR /home/waygraph
VOLUME /maps

# Chromium's own sandbox needs user namespaces, which the default seccomp profile of container runtimes forbids. So here
# the container is the sandbox: not root, and (k8s/) no capabilities and no privilege escalation. Where the namespaces
# are allowed, set WAYGRAPH_BROWSER__EXTRA_ARGS='["--disable-dev-shm-usage"]' to have both.
ENV WAYGRAPH_STORE=/maps \
    WAYGRAPH_SERVE__HOST=0.0.0.0 \
    WAYGRAPH_SERVE__PORT=8321 \
    WAYGRAPH_BROWSER__EXECUTABLE=/usr/bin/chromium-headless-shell \
    WAYGRAPH_BROWSER__EXTRA_ARGS='["--no-sandbox", "--disable-dev-shm-usage"]'

EXPOSE 8321
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
    CMD ["wget", "--quiet", "--tries=1", "--timeout=4", "--output-document=-", "http://127.0.0.1:8321/healthz"]

# Beyond loopback the service starts only with keys: docker run -e WAYGRAPH_SERVE__API_KEYS='["a long secret"]' ...
ENTRYPOINT ["tini", "--", "waygraph"]
CMD ["serve"]
