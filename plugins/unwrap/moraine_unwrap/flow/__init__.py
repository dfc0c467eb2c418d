"""Unwrapping in space: costs of the edges of a triangulation, minimum cost flow, and integration of whole cycles."""
