"""Commands that stand on their own, one module each; ``run`` and its helpers are one folder up."""
