"""The optional language model: requests to it and checks of its answers.

All requests go through ``client`` and ``dialogue``. Only the assistant needs a model; everything else works without
one.
"""
