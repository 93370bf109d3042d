#!/usr/bin/env python3
"""The copyright file of the package: our licences, and those of the crates that are linked into the executable.

    copyright.py ROOT        prints it, in Debian's machine-readable format
    copyright.py ROOT musl   of an executable that is linked statically with musl
    copyright.py ROOT ext    of cosched-ext, which is linked statically with libbpf

Crates are linked statically, so their notices have to come along. The holders of the rights are taken from the licence
files of each crate. Where a crate offers MIT among others, it is taken under MIT; of any other licence the whole text
is printed. What only runs while compiling (procedural macros, build scripts) is not in the executable.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

FORMAT = "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
LICENCE_FILES = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)", re.IGNORECASE)
# Not of the text of a licence: "copyright notice", "copyright owner", the template of Apache's appendix.
HOLDER = re.compile(r"^\W*(?:SPDX-FileCopyrightText:|Copyright(?:\s+(?:\(c\)|©))?)\s+((?:\(c\)\s+)?[\dA-Z].*)$", re.IGNORECASE)
NO_HOLDER = re.compile(r"\[yyyy\]|^(notice|owner|holder|license|and|law|statement|disclaimer)s?\b", re.IGNORECASE)


def linked_crates(root, ours):
    """The packages with code in the executable of one of ours, ours left out, by name."""
    host = re.search(r"^host: (.*)$", output("rustc", "-vV"), re.MULTILINE)[1]
    found = output("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host, cwd=root)
    metadata = json.loads(found)
    packages = {package["id"]: package for package in metadata["packages"]}
    links = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    todo = [package["id"] for package in packages.values() if package["name"] == ours]
    linked = set()
    while todo:
        crate = todo.pop()
        macros = any("proc-macro" in target["kind"] for target in packages[crate]["targets"])
        if crate in linked or macros:
            continue
        linked.add(crate)
        normal = (dep for dep in links[crate] if any(kind["kind"] is None for kind in dep["dep_kinds"]))
        todo.extend(dep["pkg"] for dep in normal)
    others = (packages[crate] for crate in linked if packages[crate]["source"])
    return sorted(others, key=lambda crate: (crate["name"], crate["version"]))


def output(*command, cwd=None):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=cwd).stdout


def licence_files(crate):
    folder = Path(crate["manifest_path"]).parent
    return sorted(path for path in folder.iterdir() if path.is_file() and LICENCE_FILES.match(path.name))


def offers_mit(expression):
    """Whether MIT alone is enough; '/' is an old way to write OR."""
    if re.search(r"\bAND\b|\(", expression):
        return False
    return "MIT" in re.split(r"\s+OR\s+|/", expression)


def holders(crate, texts):
    found = []
    for line in "\n".join(texts).splitlines():
        match = HOLDER.match(line.strip())
        if match and not NO_HOLDER.search(match[1]) and match[1].strip() not in found:
            found.append(match[1].strip())
    if any(re.search("[A-Za-z]", holder) for holder in found):
        return found
    return found + (crate["authors"] or [f"The developers of {crate['name']}"])


def indented(text):
    """Text as the value of a field: empty lines become dots."""
    return "\n".join(" " + (line.rstrip() or ".") for line in text.strip().splitlines())


def stanza(files, copyright, licence):
    return f"Files: {files}\nCopyright: " + "\n           ".join(copyright) + f"\nLicense: {licence}\n"


def main(root, *libraries):
    ours, mit = (root / "LICENSE-MIT").read_text().split("\n\n", 1)
    parts = [
        f"Format: {FORMAT}\nUpstream-Name: cosched\n"
        "Comment: The executable contains the Rust crates that are named below, as they are published, and\n"
        " parts of Rust's standard library. `Files` names their folders.\n",
        stanza("*", [ours.removeprefix("Copyright (c) ")], "MIT or Apache-2.0"),
        stanza("rust-std/*", ["The Rust Project Developers"], "MIT"),
    ]
    if "musl" in libraries:
        parts.append(stanza("musl/*", ["2005-2020 Rich Felker, et al."], "MIT"))
    for crate in linked_crates(root, "cosched-ext" if "ext" in libraries else "cosched"):
        folder = f"{crate['name']}-{crate['version']}/*"
        files = licence_files(crate)
        texts = [path.read_text(errors="replace") for path in files]
        if offers_mit(crate["license"] or ""):
            parts.append(stanza(folder, holders(crate, texts), "MIT"))
        elif texts:
            name = (crate["license"] or "other").replace(" OR ", " or ").replace(" AND ", " and ")
            parts.append(stanza(folder, holders(crate, texts), name) + indented("\n\n".join(texts)) + "\n")
        else:
            sys.exit(f"copyright: {crate['name']} is under '{crate['license']}' and comes without its text")
    parts.append("License: MIT\n" + indented(mit) + "\n")
    apache = "On Debian systems the text of this licence is in /usr/share/common-licenses/Apache-2.0."
    parts.append("License: Apache-2.0\n" + indented(apache) + "\n")
    print("\n".join(parts), end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
