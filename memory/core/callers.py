"""The labels of callers in journals."""


def caller_names(name: str) -> list[str]:
    """Return the possible labels of a caller with this name, which may lack ``user:`` or ``key:``."""
    return [name] if name.startswith(("user:", "key:")) else [name, f"user:{name}", f"key:{name}"]
