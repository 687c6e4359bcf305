"""Handling of estimators given by the user: seeds, class codes, delegation."""
