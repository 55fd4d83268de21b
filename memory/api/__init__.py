"""The JSON API: routes, schemas, authentication, errors. No logic: every route calls one function of another room."""
