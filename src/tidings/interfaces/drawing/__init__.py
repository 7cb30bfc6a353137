"""Pictures of boxes that stand on each other in layers, as SVG."""
