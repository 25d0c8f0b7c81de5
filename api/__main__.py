"""`python -m api`."""

import sys

from api.server import run
from api.settings import ApiSettings
from shared.errors import SettingsError
from shared.logs import set_up_logs
from shared.settings import load


def main() -> int:
    """Reads the settings and serves; answers the exit code, 2 for a setting that cannot be used."""
    try:
        settings = load(ApiSettings)
    except SettingsError as error:
        sys.stderr.write(f"turnkeeper: {error}\n")
        return 2
    set_up_logs(settings.LOG_LEVEL, settings.LOG_FORMAT)
    return run(settings)


if __name__ == "__main__":
    sys.exit(main())
