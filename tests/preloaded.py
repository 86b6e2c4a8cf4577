"""Modules that a pytest inside pytest needs: it drops its imports at the end, and would load them again in every run.

Loading a part of matplotlib again would make its classes differ from those of the other part.
"""

import importlib

OURS = (
    "assertion",
    "baseline",
    "pytest_plugin.session",
    "report.html",
    "report.junit",
    "result.plots",
    "cli.rows",
    "symbolic",
    "symbolic.first_look",
    "utility",
)
OTHERS = (
    "scipy.stats",
    "pandas",
    "hypothesis",
    "matplotlib.pyplot",
    "matplotlib.figure",
    "matplotlib.backends.backend_svg",
    "matplotlib.backends.backend_agg",
)
for _name in (*(f"dpaudit.{name}" for name in OURS), *OTHERS):
    importlib.import_module(_name)
