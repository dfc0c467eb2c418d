"""Extreme eigenvalues of the modulus."""
