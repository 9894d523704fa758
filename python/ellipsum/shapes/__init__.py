"""Shapes and radii of clip regions, from what is assumed of the rows. Knows no Ellipsoid."""
