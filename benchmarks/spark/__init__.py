"""The Spark engine beside the local one."""
