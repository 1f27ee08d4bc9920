#!/usr/bin/env bash
# Software: @ericblade/barcode-validator 2.4.1 (npm), beside gtin 1.0.2 (npm)
# Behaviour: It computes the check digit of codes of 8, 13 and 14 digits with the weights 1 and 3 in the wrong order, and so refuses
#   eight in ten genuine ones; those of 13 that begin with 978 and 979, which are books, and of 12 are right. gtin takes all.
# Seen: 2026-11-30
#   036000291452: yes, gtin yes
#   0036000291452: no, gtin yes
#   4006381333931: no, gtin yes
#   73513537: no, gtin yes
#   1000 genuine codes of 13 digits: 200, gtin 1000
# Hub: it hands on the upc of a recording as the publisher wrote it, mostly with 13 digits: docs/subscribers.md, "What arrives"
# Source: @ericblade/barcode-validator 2.4.1, index.js, generateChecksumCalculator and getGtinChecksum; GS1 General Specifications,
#   "Standard check digit calculations": the digit before the check digit has the weight 3
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ericblade/barcode-validator@2.4.1 gtin@1.0.2

cat >check.mjs <<'JS'
import barcode from '@ericblade/barcode-validator'
import gtin from 'gtin'

const validate = barcode.default ?? barcode
const said = (holds) => (holds ? 'yes' : 'no')
for (const code of ['036000291452', '0036000291452', '4006381333931', '73513537']) {
  console.log(`${code}: ${said(validate(code).valid)}, gtin ${said(gtin.isValid(code))}`)
}
const codes = Array.from({ length: 1000 }, (_, nth) => {
  const digits = String(400638133000 + nth)
  const sum = [...digits].reverse().reduce((all, digit, place) => all + digit * (place % 2 === 0 ? 3 : 1), 0)
  return `${digits}${(10 - (sum % 10)) % 10}`
})
const taken = (isRight) => codes.filter(isRight).length
console.log(`1000 genuine codes of 13 digits: ${taken((code) => validate(code).valid)}, gtin ${taken((code) => gtin.isValid(code))}`)
JS
node check.mjs | tee seen
diff seen - <<'SEEN'
036000291452: yes, gtin yes
0036000291452: no, gtin yes
4006381333931: no, gtin yes
73513537: no, gtin yes
1000 genuine codes of 13 digits: 200, gtin 1000
SEEN
echo 'as described'
