"""Coherence of points over their homogeneous pixels, and the effective number of looks."""
