"""Keeping a view of tables that are not copied: sources are asked, and what they saw too much or too little is
compensated.

Law: an algorithm is a pure state machine, event in, asks and publications out; the same object runs in the lab and on
real servers.
"""
