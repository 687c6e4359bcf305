"""Noise, drawn from the operating system."""
