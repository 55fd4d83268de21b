"""Export and import: a whole store as a file, and files of other systems into a store."""
