"""What `moraine simulate` is made of: orbits, random fields, the ground, and the images of it."""
