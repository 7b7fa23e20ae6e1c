"""One chunk, one step, one run on one node; knows a claim, not nodes."""
