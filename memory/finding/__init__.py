"""Which stored facts a request means: ranked candidates, strong evidence, and guards that only forbid."""
