"""Propose, race, train, evaluate: the way from a dataset to a model, on one page."""
