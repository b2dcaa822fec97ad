"""The command `svc`: one module a subcommand. It starts the processes and gives operators their tools."""
