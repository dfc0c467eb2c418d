"""Pictures and summary numbers: pyramids of rasters and point clouds, quicklooks, the browser view."""
