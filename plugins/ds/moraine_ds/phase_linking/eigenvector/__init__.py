"""Eigenvector of the smallest eigenvalue."""
