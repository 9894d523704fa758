"""Where rows come from: arrays, Arrow data, files; each record one row, by itself."""
