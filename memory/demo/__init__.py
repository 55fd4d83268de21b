"""The story behind `manage.py demo`: half a year of one assistant's memory, written by hand and spread over time."""
