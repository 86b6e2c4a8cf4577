"""The commands on tables: ``dpaudit anonymity``, ``dpaudit anonymise`` and ``dpaudit risk``, one module each."""
