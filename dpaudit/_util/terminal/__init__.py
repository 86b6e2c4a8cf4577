"""Everything that reaches a terminal: the console, escaping, exit codes."""
