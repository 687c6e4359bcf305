"""Noise from the operating system."""
