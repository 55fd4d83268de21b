"""The JSON API: routes, schemas, authentication, errors. Functions of other packages do the work."""
