"""The reading half of storage: a struct for each read call (contract, section 4), and `reader.Reader`, which answers them."""
