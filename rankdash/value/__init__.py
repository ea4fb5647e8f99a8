"""What quality costs and is worth: prices, outcomes, what they hang on, and targets."""
