"""Parts that count once, and jobs that go on where they were killed."""
