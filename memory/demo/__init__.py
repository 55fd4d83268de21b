"""The data of `manage.py demo`: half a year of one assistant's memory, from handwritten notes with dates."""
