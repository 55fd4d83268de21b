"""What a program that speaks for a model may do to the store: public functions of the rooms, as tools."""
