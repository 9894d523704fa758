"""Rows in an engine: Spark, Beam, Dask. Each module imports its engine; this one imports none."""
