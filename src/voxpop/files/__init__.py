"""Files and folders that survive a crash, and the progress of long stages."""
