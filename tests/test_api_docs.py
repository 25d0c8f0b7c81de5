"""The page at /schema, read as a browser reads it: all that it loads comes from this server."""

import re
from collections.abc import AsyncGenerator
from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx
import pytest

from tests.serve_api import open_api

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
}
LOADING = {"src", "href", "srcset", "data", "action", "formaction", "poster", "background"}


class Page(HTMLParser):
    """What a page loads, and what it holds that its policy would not let run."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.inline: list[str] = []
        self._tag = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        self.loads += [value or "" for name, value in attrs if name in LOADING]
        self.inline += [name for name, _ in attrs if name == "style" or name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag in {"script", "style"} and data.strip():
            self.inline.append(data)


@pytest.fixture
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with open_api(redis_url) as client:
        yield client


async def open_page(api: httpx.AsyncClient) -> httpx.Response:
    answer = await api.get("/schema", headers={"Accept": BROWSER})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer


async def load(api: httpx.AsyncClient, path: str) -> httpx.Response:
    """What a browser gets that loads `path`, which must be here and of the right type."""
    assert re.match(r"/(?!/)", path), f"{path} is not a path of this server"
    answer = await api.get(path)
    assert answer.status_code == 200, path
    assert answer.headers["content-type"] == TYPES[path.rpartition(".")[2]]
    assert answer.headers["x-content-type-options"] == "nosniff"
    return answer


@pytest.mark.parametrize("path", ["/schema", "/schema/"])
@pytest.mark.parametrize("accept", [BROWSER, "text/html", "application/json;q=0.5, text/html"])
async def test_a_browser_gets_the_page(api: httpx.AsyncClient, accept: str, path: str) -> None:
    answer = await api.get(path, headers={"Accept": accept})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["vary"] == "Accept"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "accept",
    [
        *("*/*", "", "application/json", "text/html;q=0.5, application/json", "image/png"),
        *(";,/", "text/html;q=inf"),
    ],
)
async def test_everybody_else_gets_json(api: httpx.AsyncClient, accept: str) -> None:
    answer = await api.get("/schema", headers={"Accept": accept})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["vary"] == "Accept"


async def test_only_who_gets_gets_the_page(api: httpx.AsyncClient) -> None:
    answer = await api.options("/schema", headers={"Accept": BROWSER})
    assert answer.content == b""


async def test_json_is_the_answer_to_no_wish_at_all(api: httpx.AsyncClient) -> None:
    del api.headers["Accept"]
    answer = await api.get("/schema")
    assert "accept" not in answer.request.headers
    assert answer.headers["content-type"] == "application/json"


async def test_the_json_has_a_path_that_never_is_a_page(api: httpx.AsyncClient) -> None:
    answer = await api.get("/schema/openapi.json", headers={"Accept": BROWSER})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["openapi"] == "3.1.0"


async def test_the_page_loads_only_from_here(api: httpx.AsyncClient) -> None:
    page = Page((await open_page(api)).text)
    assert {path.rpartition(".")[2] for path in page.loads} == {"css", "js", "png"}
    for path in page.loads:
        await load(api, path)


async def test_the_page_holds_nothing_that_its_policy_forbids(api: httpx.AsyncClient) -> None:
    assert Page((await open_page(api)).text).inline == []


async def test_the_styles_load_only_from_here(api: httpx.AsyncClient) -> None:
    page = Page((await open_page(api)).text)
    for style in (path for path in page.loads if path.endswith(".css")):
        css = (await load(api, style)).text
        assert "@import" not in css
        for target in re.findall(r"url\(\s*[\"']?(.*?)[\"')]", css):
            if not target.startswith("data:"):
                await load(api, urljoin(style, target))


async def test_the_script_starts_with_the_schema_from_here(api: httpx.AsyncClient) -> None:
    page = Page((await open_page(api)).text)
    script = (await load(api, page.loads[-1])).text
    [url] = re.findall(r'\burl: "(.*)"', script)
    assert (await load(api, url)).json()["paths"]
    assert "://" not in script
    assert "validatorUrl: null," in script


async def test_the_policy_lets_nothing_in_from_elsewhere(api: httpx.AsyncClient) -> None:
    policy = (await open_page(api)).headers["content-security-policy"]
    assert dict(directive.split(" ", 1) for directive in policy.split("; ")) == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }


async def test_files_are_kept_for_ever_only_under_their_version(api: httpx.AsyncClient) -> None:
    *files, script = Page((await open_page(api)).text).loads
    for path in files:
        assert re.match(r"/schema/swagger-ui-[0-9.]+/", path)
        assert (await load(api, path)).headers["cache-control"] == (
            "private, max-age=31536000, immutable"
        )
    assert (await load(api, script)).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("name", ["nope", "nope.json", "a/b", "swagger-ui-0/swagger-ui.css"])
async def test_an_unknown_path_is_a_problem(api: httpx.AsyncClient, name: str) -> None:
    answer = await api.get(f"/schema/{name}", headers={"Accept": BROWSER})
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code == 404


@pytest.mark.parametrize("name", ["index.html", "swagger-initializer.js", "..%2f__init__.py", ""])
async def test_only_what_the_page_needs_is_served(api: httpx.AsyncClient, name: str) -> None:
    folder = Page((await open_page(api)).text).loads[0].rpartition("/")[0]
    answer = await api.get(f"{folder}/{name}")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.status_code == 404


async def test_the_page_may_ask_the_api(api: httpx.AsyncClient) -> None:
    origin = str(api.base_url).rstrip("/")
    answer = await api.post("/turns", json={"text": "hi"}, headers={"Origin": origin})
    assert answer.status_code == 202


async def test_with_a_token_all_of_it_needs_the_token(redis_url: str) -> None:
    async with open_api(redis_url, API_TOKEN="sesame") as api:
        bearer = {"Authorization": "Bearer sesame"}
        page = await api.get("/schema", headers={"Accept": BROWSER, **bearer})
        for path in ("/schema", "/schema/openapi.json", *Page(page.text).loads):
            refused = await api.get(path, headers={"Accept": BROWSER})
            assert refused.status_code == 401, path
            assert refused.json()["code"] == "unauthorized"
            assert (await api.get(path, headers=bearer)).status_code == 200, path
