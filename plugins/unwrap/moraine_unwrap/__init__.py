"""Phase unwrapping of point clouds for moraine: their triangulation, and minimum cost flow on it."""
