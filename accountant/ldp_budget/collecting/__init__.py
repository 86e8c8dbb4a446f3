"""From answers to report files, and from charged users to released reports."""
