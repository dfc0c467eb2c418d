"""Correction of unwrapped pairs by the closure of their loops."""
