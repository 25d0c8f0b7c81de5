"""Everything that may die does, at random and at chosen points, and what must hold all the same."""
