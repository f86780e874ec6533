"""Joins the parts, one file per mode. The only rooms that know all the others."""
