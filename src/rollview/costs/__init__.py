"""What each way to have a relation at a csn costs, in seconds.

Law: one estimate. Refreshing, routing and explaining ask here, so what one of them expects the others expect as well;
what it took is recorded beside it, and the next estimate starts from there. No row is read and no Spark is started.
"""
