"""Writers: a chunk's rows, within the chunk's own transaction."""
