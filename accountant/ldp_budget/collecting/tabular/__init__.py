"""Tables of people's answers and users where they are: CSV, Parquet and Arrow, here or at an address."""
