"""Statistically homogeneous pixels: which neighbors of a pixel have its distribution of amplitudes."""
