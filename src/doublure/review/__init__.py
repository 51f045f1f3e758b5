"""Where a run, real data, measures and attacks meet."""
