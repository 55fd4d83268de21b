"""Template filters and tags of the console, for times, numbers, callers, rungs and addresses."""
