"""The model client: ChatOpenAI, less what it does unasked, plus what llama-server adds."""

# The two methods that are overridden have annotations that a strict reader cannot resolve.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI

from shared.hosts import is_local
from worker.settings import WorkerSettings

CONNECT_S = 10.0
"""Only connecting has a limit: how long a prompt takes is for the turn to judge."""


class ChatLlama(ChatOpenAI):
    """A chat model behind llama-server's OpenAI endpoint."""

    def _convert_chunk_to_generation_chunk(
        self,
        chunk: dict[str, Any],
        default_chunk_class: type,
        base_generation_info: dict[str, Any] | None,
    ) -> ChatGenerationChunk | None:
        generation = super()._convert_chunk_to_generation_chunk(
            chunk, default_chunk_class, base_generation_info
        )
        # Only from the last event: LangChain adds up the numbers of a message's chunks.
        if generation and not chunk.get("choices") and (timings := chunk.get("timings")):
            assert isinstance(generation.message, AIMessageChunk)
            generation.message.response_metadata["timings"] = timings
        return generation

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        for message in payload["messages"]:
            # Some chat templates fail on a message whose content is null.
            if message.get("content") is None:
                message["content"] = ""
        return payload


def allow() -> None:
    """Lets everyone ask."""


@asynccontextmanager
async def open_model(
    settings: WorkerSettings, check_caller: Callable[[], None] = allow
) -> AsyncGenerator[ChatLlama]:
    """The model; its connections are closed at the end.

    `check_caller` is called before each request and may raise, so that what is left of a turn that
    is over does not take the slot.
    """

    def check(_request: object) -> None:
        check_caller()

    async def acheck(_request: object) -> None:
        check_caller()

    timeout = openai.Timeout(None, connect=CONNECT_S)
    trust_env = not is_local(settings.LLAMA_BASE_URL)
    options: Any = {"timeout": timeout, "trust_env": trust_env}
    async with openai.DefaultAsyncHttpxClient(
        **options, event_hooks={"request": [acheck]}
    ) as aclient:
        client = openai.DefaultHttpxClient(**options, event_hooks={"request": [check]})
        yield ChatLlama(
            base_url=settings.LLAMA_BASE_URL,
            model=settings.LLAMA_MODEL,
            api_key=settings.LLAMA_API_KEY,
            max_completion_tokens=settings.LLAMA_MAX_TOKENS,
            extra_body={"timings_per_token": True, **settings.LLAMA_EXTRA_BODY},
            streaming=True,
            stream_usage=True,
            # A retry would be a silent second copy of a prompt that takes minutes.
            max_retries=0,
            timeout=timeout,
            # Silence is normal during prefill; and the watchdog's wait_for loses cancellations
            # on Python 3.11.
            stream_chunk_timeout=None,
            http_async_client=aclient,
            http_client=client,
        )
