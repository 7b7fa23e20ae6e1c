"""The crash matrix: real processes, killed or frozen at each crash point, and the proof after it."""
