"""llama-server's own endpoints, beside the chat."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import PurePosixPath
from typing import TypeVar

import httpx
import msgspec
from msgspec import Struct

from shared.hosts import is_local
from shared.requests import ModelStatus, Slot
from worker.settings import WorkerSettings

LOADING = 503
PROBE_S = 0.9
"""Of one request; two in turn are less than what the readiness probe waits."""
FRESH_S = 1.5
"""`/slots` asked more often keeps the server from noticing that a client has gone."""


class _Generation(Struct, frozen=True):
    n_ctx: int | None = None


class _Props(Struct, frozen=True):
    model_alias: str | None = None
    model_path: str | None = None
    default_generation_settings: _Generation = _Generation()

    @property
    def model(self) -> str | None:
        """The name to show. Without an alias of its own the server says the file's path."""
        path = PurePosixPath(self.model_alias or self.model_path or "")
        return path.name if path.is_absolute() else str(path) if path.name else None


class _NextToken(Struct, frozen=True):
    n_decoded: int | None = None


class _SlotState(Struct, frozen=True):
    is_processing: bool
    n_prompt_tokens: int | None = None
    n_prompt_tokens_cache: int | None = None
    next_token: list[_NextToken] = []

    def summary(self) -> Slot:
        """The slot as the service shows it."""
        return Slot(
            busy=self.is_processing,
            prompt_tokens=self.n_prompt_tokens,
            cached_tokens=self.n_prompt_tokens_cache,
            decoded=self.next_token[0].n_decoded if self.next_token else None,
        )


A = TypeVar("A")


class LlamaServer:
    """What the server says of itself; a probe never fails."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._status = ModelStatus(llama="down")
        self._asked_at = -FRESH_S
        self._asking = asyncio.Lock()

    async def status(self) -> ModelStatus:
        """The server's state, at most FRESH_S old."""
        async with self._asking:
            if time.monotonic() - self._asked_at >= FRESH_S:
                self._status = await self._ask()
                self._asked_at = time.monotonic()
            return self._status

    async def _ask(self) -> ModelStatus:
        try:
            health = await self._client.get("/health")
        except httpx.HTTPError:
            return ModelStatus(llama="down")
        if health.status_code == LOADING:
            return ModelStatus(llama="loading")
        if not health.is_success:
            return ModelStatus(llama="down")
        props, slots = await asyncio.gather(
            self._get("/props", _Props), self._get("/slots", list[_SlotState])
        )
        return ModelStatus(
            llama="ok",
            model=props.model if props else None,
            n_ctx=props.default_generation_settings.n_ctx if props else None,
            slot=slots[0].summary() if slots else None,
        )

    async def _get(self, path: str, answer: type[A]) -> A | None:
        """The endpoint's answer; None when the server keeps it to itself."""
        try:
            response = await self._client.get(path)
            body = response.content if response.is_success else b""
            return msgspec.json.decode(body, type=answer) if body else None
        except (httpx.HTTPError, msgspec.MsgspecError):
            return None


@asynccontextmanager
async def open_llama(settings: WorkerSettings) -> AsyncGenerator[LlamaServer]:
    """A client of the endpoints beside `/v1`."""
    headers = {"Authorization": f"Bearer {settings.LLAMA_API_KEY.get_secret_value()}"}
    root = settings.LLAMA_BASE_URL.rstrip("/").removesuffix("/v1")
    async with httpx.AsyncClient(
        base_url=root, headers=headers, timeout=PROBE_S, trust_env=not is_local(root)
    ) as client:
        yield LlamaServer(client)
