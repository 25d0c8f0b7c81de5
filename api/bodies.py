"""The body of a request, from bytes to a turn that somebody asks for."""

import hashlib
import json
import math
import re
from typing import Any, cast

import msgspec
from msgspec import Struct

from api.errors import Invalid, NotJson, TooLarge

MAX_BODY_BYTES = 262_144
MAX_TEXT_BYTES = 65_536
MAX_DEPTH = 100
"""Levels of lists and objects in each other; far below what any JSON library here can take."""

THREAD_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class TurnBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a client may ask for: `text` or `input`, the rest as it likes."""

    text: str | None = None
    input: dict[str, Any] | None = None
    thread_id: str | None = None
    agent: str | None = None


def parse_json(raw: bytes) -> Any:
    """The value of a JSON text; raises NotJson, or Invalid for what cannot be stored as it came."""
    try:
        value = json.loads(raw.decode(), parse_constant=_refuse_constant, parse_float=_parse_float)
        _check_depth(value)
        canonical(value)
    except UnicodeEncodeError:
        raise Invalid(
            "The body holds half of a surrogate pair, which is not a character."
        ) from None
    except (ValueError, RecursionError):
        raise NotJson("The body is not JSON in UTF-8.") from None
    return value


def canonical(value: Any) -> bytes:
    """The same bytes for the same JSON value, however it was written."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def parse_turn(raw: bytes) -> TurnBody:
    """The turn that a body asks for, its text stripped; raises NotJson, TooLarge or Invalid."""
    try:
        body = msgspec.convert(parse_json(raw), TurnBody)
    except msgspec.ValidationError as error:
        raise Invalid(f"{error}.") from None
    _check_ids(body)
    if (body.text is None) == (body.input is None):
        raise Invalid("Give either text or input.")
    if body.text is None:
        return body
    return msgspec.structs.replace(body, text=_check_text(body.text.strip()))


def digest(body: TurnBody) -> str:
    """What tells one request from another under the same idempotency key: SHA-256 in hex."""
    return hashlib.sha256(canonical(msgspec.to_builtins(body))).hexdigest()


def digest_retry(turn_id: str) -> str:
    """The same for a retry, which has no body and is told from every request that has one."""
    return hashlib.sha256(canonical({"retry_of": turn_id})).hexdigest()


def _check_ids(body: TurnBody) -> None:
    if body.thread_id is not None and not THREAD_ID.fullmatch(body.thread_id):
        raise Invalid("thread_id must be 1 to 128 of A-Z, a-z, 0-9, _ and -.")


def _check_text(text: str) -> str:
    if not text:
        raise Invalid("text is empty.")
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise TooLarge(f"text is longer than {MAX_TEXT_BYTES} bytes.")
    return text


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _parse_float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise Invalid("A number in the body is too large.")
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
    if level:
        raise ValueError("nested too deeply")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast(dict[str, Any], value).values())
    return cast(list[Any], value) if isinstance(value, list) else []
