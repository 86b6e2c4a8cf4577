"""The command line: ``dpaudit run``, ``check``, ``list``, ``report``, ``compare``, ``init`` and the calculators."""
