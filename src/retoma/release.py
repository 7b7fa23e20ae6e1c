"""Which release this is; stands below everything, so that all may say it."""

VERSION = "0.1.0"
