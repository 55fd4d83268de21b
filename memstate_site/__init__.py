"""The site around the store: settings, addresses, the embedded database and the processes that `manage.py up` runs."""
