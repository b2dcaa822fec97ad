"""The reading half of storage: one method of `storage.reader.reader.Reader` answers each read call (contract, section 4)."""
