"""Who calls: keys, roles, and the scope that a key is bound to."""
