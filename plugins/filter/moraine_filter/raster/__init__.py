"""The filter of rasters: its network, the tiles it works on, and the kernel."""
