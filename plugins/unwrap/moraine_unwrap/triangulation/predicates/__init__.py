"""Signs of determinants without rounding, for the few that rounding would decide."""
