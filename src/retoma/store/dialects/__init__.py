"""One class a database, overriding what differs."""
