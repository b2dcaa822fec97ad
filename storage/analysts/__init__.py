"""What analysts read and may do: views, row policies and limits."""
