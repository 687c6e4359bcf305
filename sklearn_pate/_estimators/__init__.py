"""Work with other people's estimators: seeds, class codes, delegation."""
