"""Clouds in tiles: points that are unwrapped part by part where they are too many at once, and joined again."""
