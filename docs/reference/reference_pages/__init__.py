"""Writers of the generated reference pages, one module for each kind of page. `generate.py` runs them."""
