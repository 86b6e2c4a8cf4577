"""The result of an audit: the values, their text, and their JSON form."""
