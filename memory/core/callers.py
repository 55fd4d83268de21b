"""The labels of callers in journals."""


def caller_names(name: str) -> list[str]:
    """Return the labels that a caller with this name may have. The name may lack the prefix ``user:`` or ``key:``."""
    return [name] if name.startswith(("user:", "key:")) else [name, f"user:{name}", f"key:{name}"]
