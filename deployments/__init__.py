"""Every way in which people run it: command line, schedules, clusters, pages."""
