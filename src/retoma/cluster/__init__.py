"""Workers: supervisor and slots, leases, takeover, coordination."""
