"""`python -m api`."""

import argparse
import sys

from shared.errors import SettingsError
from shared.logs import set_up_logs
from shared.reasons import say_reason
from shared.settings import load
from shared.signals import end_on_stop_signals


def main() -> int:
    """Reads the settings and serves; answers the exit code, 2 for a setting that cannot be used."""
    end_on_stop_signals()
    # Imported only now, as it takes a while in which the API may be told to stop.
    from api.server import run
    from api.settings import ApiSettings

    parser = argparse.ArgumentParser(prog="turnkeeper api")
    parser.add_argument("--fd", type=int, help="a socket that listens already, in place of a port")
    options = parser.parse_args()
    try:
        settings = load(ApiSettings)
    except SettingsError as error:
        say_reason(error)
        return 2
    set_up_logs(settings.LOG_LEVEL, settings.LOG_FORMAT)
    return run(settings, options.fd)


if __name__ == "__main__":
    sys.exit(main())
