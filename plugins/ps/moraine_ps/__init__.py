"""moraine_ps: persistent scatterers (PS): how steady pixels are over time."""

__version__ = "0.1.0"
