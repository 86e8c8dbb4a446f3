"""What stands before the application: bounds of size, time and rate, and headers that browsers go by."""
