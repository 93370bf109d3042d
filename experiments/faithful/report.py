"""The table of results."""

from common.report import page

HEAD = """# What is reproduced of the paper on faithful scheduling

Written by `experiments/faithful/run`; [README.md](README.md) tells the assumptions and what the verdicts mean.
"""


def markdown(found):
    return page(HEAD, found, {"constant": "holds under ±20 %"})
