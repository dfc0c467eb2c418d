"""Whole cycles of image pairs: what has to be added to them so that all loops of a network close."""
