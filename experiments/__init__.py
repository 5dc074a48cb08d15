"""The papers' experiments: a folder a paper, a module a claim; `limen reproduce` runs them."""

ORDER = ["cei", "vci", "bmq", "joins", "windows"]
