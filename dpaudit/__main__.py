"""``python -m dpaudit``."""

from dpaudit.cli import entry

entry()
