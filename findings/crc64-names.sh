#!/usr/bin/env bash
# Software: crc64-ecma 3.0.1 (npm), crcmod 1.7 (Debian python3-crcmod 1.7+dfsg-3+b3)
# Behaviour: What libraries call CRC-64, also one with ECMA in its name, is another checksum than CRC-64/ECMA-182.
#   crc64-ecma computes CRC-64/XZ: the same polynomial, reflected, with all bits set at the start and inverted at the
#   end. crcmod has CRC-64 (ISO 3309), CRC-64/WE and CRC-64/Jones, and none with this polynomial that begins with zero.
# Seen: 2026-11-28, for the text my-string-to-encode, of which CRC-64/ECMA-182 is 6a80b80f748c9b50:
#   crc64-ecma 73ce72a84e63e59b
#   crcmod crc-64 8d6245a8969f1e69
#   crcmod crc-64-we 046fa8aeb2e58693
#   crcmod crc-64-jones 28a739670aea7fba
# Hub: Ids that are derived with them are other ids, service.unknown: docs/https.md, "How an id is derived".
# Source: README of crc64-ecma ("Calculate CRC64/XZ hashes"), crcmod/predefined.py, and the catalogue of parametrised
#   CRC algorithms (CRC-64/ECMA-182, CRC-64/XZ, CRC-64/WE)
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' python3-crcmod)
echo "python3-crcmod $version"
[ "$version" = 1.7+dfsg-3+b3 ]
echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts crc64-ecma@3.0.1

cat >crc.mjs <<'JS'
import { crc64 } from 'crc64-ecma'
console.log('crc64-ecma', crc64('my-string-to-encode').toString(16).padStart(16, '0'))
JS
cat >crc.py <<'PYTHON'
from crcmod.predefined import mkCrcFun

for name in ("crc-64", "crc-64-we", "crc-64-jones"):
    print("crcmod", name, "%016x" % mkCrcFun(name)(b"my-string-to-encode"))
PYTHON
{ node crc.mjs; /usr/bin/python3 crc.py; } | tee seen

diff seen - <<'SEEN'
crc64-ecma 73ce72a84e63e59b
crcmod crc-64 8d6245a8969f1e69
crcmod crc-64-we 046fa8aeb2e58693
crcmod crc-64-jones 28a739670aea7fba
SEEN
echo 'as described'
