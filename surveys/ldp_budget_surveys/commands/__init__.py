"""Commands about collections, surveys and their reports. Entry points name them for the command line."""
