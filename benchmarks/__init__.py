"""Measurements for the pages: a folder for each page, and their result files."""
