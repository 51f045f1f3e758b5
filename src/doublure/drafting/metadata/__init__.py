"""Forms of metadata that describe a data set: a file a form."""
