"""Text that no encoding can hold, made such that every one can."""

import json
from typing import Any, cast

import msgspec


def is_visible(text: str) -> bool:
    """Only characters of ASCII that can be seen, which every header can carry."""
    return text.isascii() and text.isprintable() and " " not in text


def mend(text: str) -> str:
    """The text with half surrogate pairs replaced by U+FFFD; two halves that meet become one."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mend_json(value: Any) -> Any:
    """A JSON value with every text in it mended, names included."""
    if isinstance(value, str):
        return mend(value)
    if isinstance(value, dict):
        members = cast(dict[str, Any], value).items()
        return {mend(str(name)): mend_json(member) for name, member in members}
    if isinstance(value, list):
        return [mend_json(item) for item in cast(list[Any], value)]
    return value


def encode(value: Any) -> bytes:
    """The value as JSON, whatever a model server or an agent has put into it."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(mend_json(msgspec.to_builtins(value)), ensure_ascii=False).encode()
