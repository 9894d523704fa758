"""A mean or sum from a box or ball alone: a fixed plan of rounds under one budget."""
