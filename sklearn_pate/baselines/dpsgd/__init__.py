"""Networks trained by DP-SGD."""
