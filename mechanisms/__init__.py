"""Reference mechanisms: vectorised samplers with their exact laws where known, and in ``broken`` the wrong ones."""
