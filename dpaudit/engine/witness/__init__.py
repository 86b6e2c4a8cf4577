"""The example that a violation ends with: an event, the smallest pair that shows it, a picture and a script."""
