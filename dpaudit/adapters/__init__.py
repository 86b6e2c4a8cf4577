"""Other people's libraries seen as mechanisms and claims.

Each module here is imported when asked for, and imports its library when a function is called, not before:

- :mod:`dpaudit.adapters.opendp`: measurements, with the claim read from ``map``
- :mod:`dpaudit.adapters.diffprivlib`: mechanisms, tools and models, with the claim read from ``epsilon`` and ``delta``
- :mod:`dpaudit.adapters.accounting`: events of dp-accounting as claims
- :mod:`dpaudit.adapters.estimators`: what ``fit`` leaves behind, as the output
- :mod:`dpaudit.adapters.frames`: functions of data frames
- :mod:`dpaudit.adapters.flower`: rounds of Flower's strategies, with the claim that their noise multiplier means
- :mod:`dpaudit.adapters.opacus`: steps and trainings, with the claim read from the engine's accountant
- :mod:`dpaudit.adapters.jax_privacy`: steps, with the claim of an execution plan, and the library's accountant
- :mod:`dpaudit.adapters.synthetic`: synthesisers with ``fit`` and ``sample``, with a summary of their table as the output
- :mod:`dpaudit.adapters.sql`: queries to a database, on data that are loaded for every release

A plain function of the data needs no adapter: ``dpaudit.audit(f, claim, neighbours)`` takes it as it is.
"""
