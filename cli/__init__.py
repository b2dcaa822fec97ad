"""The command `svc`: starts the processes and provides the operators' tools, one module per subcommand."""
