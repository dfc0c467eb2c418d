"""Local slope and noise of a wrapped phase: the statistics behind the cost of an edge."""
