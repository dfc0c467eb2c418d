"""Phase linking: the phase history that explains a coherence matrix best."""

BETA_MIN = 0.0
"""Least regularization of coherence matrices that is used where none is given; decision 0023 says why."""
