"""What it takes to see whether a turn that was cancelled or failed has left a trace."""
