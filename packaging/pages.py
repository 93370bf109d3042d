#!/usr/bin/env python3
"""Installs the pages for users: pages.py install ROOT DOC; looks whether their links lead somewhere: pages.py check DOC.

Pages link to one another, to pictures, and to what only the sources have. The last cannot be followed where a package
was installed, so there the words of the link stay, and tell where in the sources it leads.
"""

import pathlib
import re
import shutil
import sys

LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def installed(root):
    """What users get, by its place below the sources, which is its place below the folder, too."""
    folders = [root / "docs", root / "docs/research"]
    pages = [root / "README.md", *(page for folder in folders for page in sorted(folder.glob("*.md")))]
    return pages, sorted((root / "docs/pictures").glob("*"))


def targets(page):
    """The places of the links of a page, as far as they are files, with each link."""
    for link in LINK.finditer(page.read_text()):
        target = link[3]
        if target and not re.match(r"[a-z]+:", target):
            yield link, (page.parent / target).resolve()


def for_users(page, root, kept):
    """The page, with words in the place of links that users could not follow."""
    text = page.read_text()
    for link, target in reversed(list(targets(page))):
        if not target.exists():
            sys.exit(f"{page}: {link[3]} is not there")
        if target not in kept:
            place = target.relative_to(root)
            words = f"{link[2]} (`{place}` in the sources)"
            text = text[: link.start()] + words + text[link.end() :]
    return text


def install(root, doc):
    root = root.resolve()
    pages, pictures = installed(root)
    kept = {*pages, *pictures, root / "docs", root / "docs/research", root / "docs/pictures"}
    for file in [*pages, *pictures]:
        to = doc / file.relative_to(root)
        to.parent.mkdir(parents=True, exist_ok=True)
        if file in pages:
            to.write_text(for_users(file, root, kept))
        else:
            shutil.copyfile(file, to)
        to.chmod(0o644)


def check(doc):
    pages = sorted(doc.rglob("*.md"))
    dead = [f"{page}: {link[3]}" for page in pages for link, to in targets(page) if not to.exists()]
    print("\n".join(dead) or f"{len(pages)} pages")
    return 1 if dead or not pages else 0


if __name__ == "__main__":
    command, *folders = sys.argv[1:]
    sys.exit({"install": install, "check": check}[command](*map(pathlib.Path, folders)))
