"""Histories of sources and of a view, and the judge of how consistent the view was.

Law: a verdict is a function of the history alone; no engine, no file and no clock is asked.
"""
