"""Pages of a survey: the report for readers, with its charts, its design, its protection and its words."""
