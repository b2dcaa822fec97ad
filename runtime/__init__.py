"""What every process of ours needs of its machine: supervision of children, and memory that is given back."""
