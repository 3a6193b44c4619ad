"""One module a figure or table of the paper."""
