"""Modules that a pytest inside pytest needs: it forgets what it imported, and would load them again for every run.

Half of matplotlib twice would not know the classes of the other half.
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
