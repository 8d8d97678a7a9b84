"""Java, the Spark session and the count of what it did. Nothing is started by an import."""
