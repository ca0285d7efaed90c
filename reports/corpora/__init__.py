"""The site of an audit of many captures: static pages from its tables."""
