"""Near-duplicates: found by meaning and title, guarded, reviewed, merged, and taken apart again."""
