"""The Faust app: worker, agents, tables, and the patches that keep Faust exact."""
