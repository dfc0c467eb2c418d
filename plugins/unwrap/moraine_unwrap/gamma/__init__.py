"""Unwrapping by GAMMA's program mcf_pt."""
