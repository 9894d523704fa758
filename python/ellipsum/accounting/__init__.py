"""What releases cost, as exact fractions, and as the events of other accountants."""
