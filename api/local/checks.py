"""What `turnkeeper up` makes sure of before it starts anything."""

from api.listener import bind, describe_refusal
from api.local import llama, valkey
from api.local.errors import CannotStart
from api.local.options import Options


def check(options: Options) -> None:
    """Raises CannotStart for the first thing that is missing."""
    if options.redis_url is None:
        valkey.check_installed()
    if options.model is not None:
        llama.check_installed()
        llama.check_model(options.model)


def check_port(host: str, port: int) -> int:
    """The port, or a free one for 0; raises CannotStart when it is taken."""
    try:
        with bind(host, port) as listener:
            return listener.getsockname()[1]
    except OSError as error:
        raise CannotStart(describe_refusal(host, port, error)) from None
