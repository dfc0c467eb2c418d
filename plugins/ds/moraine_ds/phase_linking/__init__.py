"""Phase linking: the phase history that explains a coherence matrix best."""
