"""Points of a raster: their order, their sets and where they lie (the points family of moraine)."""
