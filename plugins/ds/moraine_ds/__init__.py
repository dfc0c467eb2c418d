"""Distributed scatterers for moraine: homogeneous pixels, coherence, phase linking and its quality."""
