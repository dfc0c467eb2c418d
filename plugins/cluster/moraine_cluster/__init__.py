"""Batch clusters for moraine: a backend, no commands."""
