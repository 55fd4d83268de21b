"""What templates of the console can say about times, numbers, rungs and addresses."""
