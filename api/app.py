"""The application: its routes, with the collaborators that they are given."""

from litestar import Litestar
from litestar.config.cors import CORSConfig
from litestar.di import Provide
from litestar.types import ASGIApp

from api.auth import Guard
from api.bodies import MAX_BODY_BYTES
from api.health import get_live, get_ready
from api.hub import Hub
from api.openapi.components import SCHEMA_PLUGINS
from api.openapi.document import describe_api
from api.openapi.page import get_start_script, get_swagger_ui
from api.problems import HANDLERS
from api.service import TurnService
from api.settings import ApiSettings
from api.status import get_queue, get_status
from api.turns import (
    cancel_turn,
    get_events,
    get_turn,
    post_turn,
    post_turn_and_stream,
    retry_turn,
)
from shared.redis import Redis

ROUTES = [
    *(post_turn, post_turn_and_stream, get_turn, get_events, cancel_turn, retry_turn),
    *(get_queue, get_status, get_live, get_ready),
    *(get_start_script, get_swagger_ui),
]


def create_app(settings: ApiSettings, redis: Redis, hub: Hub) -> ASGIApp:
    """The application behind its guard; `redis` and `hub` are open and stay the caller's."""
    cors = _allow_origins(settings.cors_origins)
    app = Litestar(
        ROUTES,
        dependencies={
            "settings": _give(settings),
            "redis": _give(redis),
            "hub": _give(hub),
            "service": _give(TurnService(redis, settings)),
        },
        exception_handlers=HANDLERS,
        openapi_config=describe_api(),
        plugins=SCHEMA_PLUGINS,
        cors_config=cors,
        request_max_body_size=MAX_BODY_BYTES,
        logging_config=None,
        debug=False,
    )
    return Guard(app, settings, cors)


def _allow_origins(origins: list[str]) -> CORSConfig | None:
    if not origins:
        return None
    exposed = ["Location", "Retry-After", "X-Turn-Id", "X-Thread-Id"]
    return CORSConfig(allow_origins=origins, expose_headers=exposed)


def _give(value: object) -> Provide:
    def provide() -> object:
        return value

    return Provide(provide, sync_to_thread=False)
