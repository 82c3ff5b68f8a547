"""The pure core: what a run is, and what follows from what happens to it."""
