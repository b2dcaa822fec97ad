"""The reading half of storage.

Each read call has a struct (contract, section 4), and `reader.Reader` answers them.
"""
