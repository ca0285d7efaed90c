"""Figures: points chosen, packed, and drawn as SVG."""
