"""The only package that knows the control tables."""
