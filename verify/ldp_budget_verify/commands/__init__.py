"""Commands that check a mechanism, a certificate or a published survey, and that start a plugin.

Entry points name them for the command line.
"""
