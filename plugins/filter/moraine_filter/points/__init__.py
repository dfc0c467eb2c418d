"""What n2ft is made of: neighbors of points, the part of a cloud that a result depends on, and the network."""
