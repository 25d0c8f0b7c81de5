"""The page that a browser gets at /schema: Swagger UI, every file of it from this server."""

from importlib.metadata import version
from pathlib import Path
from string import Template

from litestar import Response, get
from litestar.enums import MediaType
from litestar.exceptions import NotFoundException
from litestar.params import FromPath
from litestar.response import File
from swagger_ui_bundle import swagger_ui_path  # pyright: ignore[reportMissingTypeStubs]

from api.problems import AnyRequest

PATH = "/schema"
SWAGGER_UI = f"{PATH}/swagger-ui-{version('swagger-ui-bundle-v2')}"
"""Where its files are. The version is in the name, so a browser may keep them for ever."""

FILES = {
    "favicon-32x32.png": "image/png",
    "index.css": "text/css",
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
}
"""What the page needs of the package, which has more."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}
UNNAMED = {"Cache-Control": "no-cache", **NO_SNIFFING}
"""For what has no version in its name."""
NAMED = {"Cache-Control": "private, max-age=31536000, immutable", **NO_SNIFFING}

OURS = Path(__file__).parent


def show_page(request: AnyRequest) -> Response[str] | None:
    """The page for whoever would rather have HTML at /schema; nothing for everybody else."""
    if request.method != "GET" or request.scope["path"].rstrip("/") != PATH:
        return None
    if not _prefers_html(request):
        return None
    page = Template((OURS / "page.html").read_text()).substitute(swagger_ui=SWAGGER_UI)
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", **UNNAMED}
    return Response(page, media_type=MediaType.HTML, headers=headers)


def _prefers_html(request: AnyRequest) -> bool:
    offered: list[str] = [MediaType.JSON, MediaType.HTML]
    try:
        return request.accept.best_match(offered) == MediaType.HTML
    except (OverflowError, ValueError):  # Litestar (2.25) takes q for a number that it may not be
        return False


@get(f"{PATH}/start.js", include_in_schema=False)
async def get_start_script() -> File:
    """The script that starts Swagger UI."""
    return File(
        OURS / "start.js",
        filename="start.js",
        media_type="text/javascript",
        content_disposition_type="inline",
        headers=UNNAMED,
    )


@get(f"{SWAGGER_UI}/{{name:str}}", include_in_schema=False)
async def get_swagger_ui(name: FromPath[str]) -> File:
    """A file of Swagger UI."""
    if name not in FILES:
        raise NotFoundException
    return File(
        swagger_ui_path / name,
        filename=name,
        media_type=FILES[name],
        content_disposition_type="inline",
        headers=NAMED,
    )
