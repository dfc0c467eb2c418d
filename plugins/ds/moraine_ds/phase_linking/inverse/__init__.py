"""Weights: the inverse of the regularized modulus."""
