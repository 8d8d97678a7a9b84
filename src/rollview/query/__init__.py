"""Answers: where everything stands, how a view is maintained, and the proof that it is right.

Law: asking never changes anything, and everything in one answer is read at one csn.
"""
