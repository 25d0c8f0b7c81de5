# One image for both processes: `turnkeeper api` and `turnkeeper worker`.
FROM ghcr.io/astral-sh/uv:0.13.9 AS uv

FROM python:3.13-slim AS build
COPY --from=uv /uv /usr/local/bin/uv
WORKDIR /app
ENV UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
# The libraries change less often than the code: their layer is kept.
COPY pyproject.toml uv.lock ./
RUN uv sync --locked --no-dev --no-install-project
COPY README.md LICENSE ./
COPY shared shared
COPY worker worker
COPY api api
RUN uv sync --locked --no-dev --no-editable

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /data turnkeeper \
    && install --directory --owner turnkeeper --group turnkeeper /data
COPY --from=build /app/.venv /app/.venv
ENV PATH=/app/.venv/bin:$PATH PYTHONUNBUFFERED=1 CHECKPOINT_DB=/data/checkpoints.sqlite
USER turnkeeper
WORKDIR /data
VOLUME /data
EXPOSE 8010
CMD ["turnkeeper", "api"]
