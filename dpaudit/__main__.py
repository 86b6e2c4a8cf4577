"""``python -m dpaudit``."""

from dpaudit.cli.main import entry

entry()
