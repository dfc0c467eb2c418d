"""How well a linked phase history explains the coherence it came from."""
