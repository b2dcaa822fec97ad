"""The read API and the pages: what a person or a program sees of issues, behind the admin password, on its own port."""
