"""What a Worker is made of (../worker.py)."""
