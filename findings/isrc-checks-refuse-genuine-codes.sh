#!/usr/bin/env bash
# Software: python-stdnum 1.18 (Debian python3-stdnum 1.18-1); validator 13.15.35 (npm), which class-validator and express-validator use
# Behaviour: stdnum takes the first two letters of an ISRC for a country of ISO 3166-1, and of the others knows QM, CP, DG and ZZ: it
#   refuses all of QZ and QT, which are two of the four of the United States. isISRC() of validator refuses hyphens and small letters,
#   isEAN() a UPC-A, which has 12 digits. stdnum takes all of these three.
# Seen: 2026-11-30
#   US-S1Z-99-00001: stdnum yes, validator no
#   USS1Z9900001: stdnum yes, validator yes
#   uss1z9900001: stdnum yes, validator no
#   QMS1Z9900001: stdnum yes, validator yes
#   QZS1Z9900001: stdnum no, validator yes
#   QTS1Z9900001: stdnum no, validator yes
#   036000291452: stdnum yes, validator no
#   0036000291452: stdnum yes, validator yes
# Hub: it hands on isrc and upc as the publisher wrote them, so a subscriber that checks them like this drops events of genuine recordings:
#   docs/subscribers.md, "What arrives"
# Source: stdnum/isrc.py, _country_codes; validator 13.15.35, lib/isISRC.js and lib/isEAN.js. The letters of the United States:
#   https://usisrc.org/about/constructing_with_code.html; that the letters mean no country: ISRC Bulletin 2015/01
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' python3-stdnum)
echo "python3-stdnum $version"
[ "$version" = 1.18-1 ]
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts validator@13.15.35

cat >check.py <<'PY'
import sys
from stdnum import ean, isrc

print("yes" if (isrc if sys.argv[1][0].isalpha() else ean).is_valid(sys.argv[1]) else "no")
PY
cat >check.mjs <<'JS'
import validator from 'validator'

const [code] = process.argv.slice(2)
console.log((/^\d/.test(code) ? validator.isEAN(code) : validator.isISRC(code)) ? 'yes' : 'no')
JS
for code in US-S1Z-99-00001 USS1Z9900001 uss1z9900001 QMS1Z9900001 QZS1Z9900001 QTS1Z9900001 036000291452 0036000291452; do
  echo "$code: stdnum $(/usr/bin/python3 check.py $code), validator $(node check.mjs $code)"
done | tee seen
diff seen - <<'SEEN'
US-S1Z-99-00001: stdnum yes, validator no
USS1Z9900001: stdnum yes, validator yes
uss1z9900001: stdnum yes, validator no
QMS1Z9900001: stdnum yes, validator yes
QZS1Z9900001: stdnum no, validator yes
QTS1Z9900001: stdnum no, validator yes
036000291452: stdnum yes, validator no
0036000291452: stdnum yes, validator yes
SEEN
echo 'as described'
