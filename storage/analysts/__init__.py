"""Access of analysts: views, row policies and limits."""
