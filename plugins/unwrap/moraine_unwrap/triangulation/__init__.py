"""Delaunay triangulation of point clouds: triangles, edges, hull and connected regions."""
