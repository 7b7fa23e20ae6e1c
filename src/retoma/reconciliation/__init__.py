"""Financial reconciliation, built on Retoma's public names like any other application."""
