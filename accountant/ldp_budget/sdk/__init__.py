"""The toolkit of plugin authors: the base class, its fields and domain, exact channels, client programs, estimates.

It imports guarantees, sampling and composition.
"""
