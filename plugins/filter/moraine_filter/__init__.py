"""moraine_filter: learned filters of interferometric phase, on rasters and point clouds."""

__version__ = "0.1.0"
