"""Containers of what teachers answered: vote counts and soft votes."""
