"""Who may do what: API keys, the links of respondents, and what needs the consent of two. All of it is records."""
