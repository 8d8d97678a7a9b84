"""PostgreSQL: logical decoding by pgoutput, read through SQL functions and advanced when it is durable."""
