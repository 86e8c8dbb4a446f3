"""Extensions of Sphinx for the site: formulas as MathML, the search of English and Korean, groups in the sidebar."""
