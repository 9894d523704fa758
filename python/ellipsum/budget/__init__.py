"""Budgets that last, and what several releases promise together."""
