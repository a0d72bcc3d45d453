#!/usr/bin/env bash
# usage: subset.sh FOLDER: makes the fonts of the documents from FOLDER's DejaVuSans.ttf and DejaVuSans-Bold.ttf, release 2.37 (Debian:
# fonts-dejavu-core). It needs fonttools 4.60.1 from PyPI.
set -euo pipefail
cd "$(dirname "$0")"
# Latin with Vietnamese and phonetic letters, marks, Greek, Cyrillic, punctuation, superscripts, currencies, letter-like signs, arrows, box.
ranges=U+0020-02AF,U+0300-036F,U+0370-052F,U+1E00-1FFF,U+2010-205F,U+2070-209F,U+20A0-20CF,U+2100-214F,U+2190-2193,U+2212,U+2248,U+2260-2265,U+25A0-25CF
for name in DejaVuSans DejaVuSans-Bold; do
	pyftsubset "$1/$name.ttf" --unicodes=$ranges --layout-features= --no-hinting --desubroutinize --name-IDs='*' --output-file="$name.ttf"
done
