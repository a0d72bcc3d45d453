#!/usr/bin/env bash
# usage: subset.sh FOLDER: makes the fonts of the documents from the Noto Sans fonts in FOLDER, release 20201225 (Debian: fonts-noto-core).
# It needs fonttools 4.60.1 from PyPI.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
# Latin with Vietnamese, phonetic and modifier letters, marks, Greek, Cyrillic, punctuation, superscripts, currencies, letter-like signs.
sans=U+0020-02FF,U+0300-036F,U+0370-052F,U+1E00-1FFF,U+2010-205F,U+2070-209F,U+20A0-20CF,U+2100-214F
# What Noto Sans has in fonts of other scripts: the signs of baht, dram, afghani, riel, taka and rial, Coptic letters, and signs.
others=(Thai:U+0E3F Armenian:U+058F Arabic:U+060B,U+FDFC Khmer:U+17DB Bengali:U+09F3 Coptic:U+03E2-03EF
	Math:U+2190-2193,U+2212,U+2248,U+2260-2265 Symbols2:U+25A0-25CF)

# subset NAME WEIGHT RANGES
subset() {
	local from="$1-$2.ttf"
	[ -f "$folder/$from" ] || from="$1-Regular.ttf" # signs have one weight
	pyftsubset "$folder/$from" --unicodes="$3" --layout-features= --no-hinting --desubroutinize --drop-tables+=GDEF,GPOS,GSUB,MATH \
		--output-file="$work/$1-$2.ttf"
	parts+=("$work/$1-$2.ttf")
}

folder=$(cd "$OLDPWD" && cd "$1" && pwd)
for weight in Regular Bold; do
	parts=()
	subset NotoSans $weight "$sans"
	for other in "${others[@]}"; do
		subset "NotoSans${other%%:*}" $weight "${other#*:}"
	done
	SOURCE_DATE_EPOCH=0 pyftmerge --output-file="NotoSans-$weight.ttf" "${parts[@]}"
done
