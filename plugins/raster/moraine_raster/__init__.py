"""Commands on whole rasters: arithmetic, coordinates, masks (the raster family of moraine)."""
