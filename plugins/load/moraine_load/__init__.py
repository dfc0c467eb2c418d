"""moraine_load: GAMMA data into moraine, and simulated data with known truth."""

__version__ = "0.1.0"
