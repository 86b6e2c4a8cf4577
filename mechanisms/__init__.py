"""Reference mechanisms: vectorised samplers, with their exact laws where known. A mechanism is a module or package of its name.

- Noise on an answer: ``laplace``, ``geometric``, ``gaussian``, ``bounded_noise``; for doubles: ``snapping``, ``dyadic``.
- One of several: ``exponential``, ``noisy_max``, ``above_threshold``, ``sparse_vector``.
- Quantiles: ``median``, ``histogram_method``, ``inverse_sensitivity``, ``exponential_quantiles``.
- Tables: ``noisy_histogram``, ``synthesis``. Local: ``randomised_response``, ``rappor``. Secrets: ``pufferfish``.
- Learning: ``dp_sgd``, ``federated``, ``importance_weighting``. Several releases about the same data: ``composition``.

``broken`` has wrong ones under the same names, each with its bug in a sentence and its true epsilon. ``registry`` lists all, with
claim, truth, neighbours and the verdict that an audit must reach.
"""
