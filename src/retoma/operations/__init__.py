"""What people ask and order, from the command line or from code."""
