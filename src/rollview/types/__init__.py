"""Types of columns: as Spark spells them, and as Arrow, Parquet and Delta hold them."""
