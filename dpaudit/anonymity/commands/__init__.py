"""The commands ``dpaudit risk`` and ``dpaudit anonymise``; ``dpaudit anonymity`` is ``dpaudit/anonymity/command.py``."""
