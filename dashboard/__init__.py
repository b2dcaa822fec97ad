"""The read API and the pages: issues and events for people and programs, behind the admin password."""
