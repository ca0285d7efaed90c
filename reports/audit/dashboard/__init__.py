"""Pages about the runs that a server stores: plain HTML with the signs and strips of an audit's page."""
