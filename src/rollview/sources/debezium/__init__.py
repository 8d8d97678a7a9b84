"""Debezium change events in JSON, from a folder of files or from Kafka topics: every database that Debezium knows."""
