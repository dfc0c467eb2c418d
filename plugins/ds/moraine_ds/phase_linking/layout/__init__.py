"""Matrices of one point in memory."""
