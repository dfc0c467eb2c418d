"""Unwrapping in time: gradients between neighboring points, corrected so that all loops of image pairs close."""
