"""The page of results."""

from common.report import known, page


def tell(rows, *_):
    """The claims that are judged or are inputs, and the page of all."""
    return {"claims": known(rows)}, page("faithful", "paper on faithful scheduling", rows)
