"""Work within a limit on memory: data that does not fit goes to private files."""
