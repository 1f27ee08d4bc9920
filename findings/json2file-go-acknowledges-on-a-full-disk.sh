#!/usr/bin/env bash
# Software: json2file-go 1.15 (Debian json2file-go 1.15+b7), a server that keeps the JSON of each webhook in a file
# Behaviour: Where the disk is full it answers 200 and `JSON data saved to file`, and leaves an empty file. Only a file that it cannot
#   open is a 500. The file has the body alone: what was in the header, such as a token or a signature, is gone.
# Seen: 2026-11-30, pushes of 30,008 bytes, on a file system of 64 KiB
#   1: JSON data saved, 200: 30008 bytes in its file
#   2: JSON data saved, 200: 30008 bytes in its file
#   3: JSON data saved, 200: 0 bytes in its file
#   its folder is gone: no such file or directory, 500
# Hub: a 200 acknowledges, so the events of a full disk are lost, and nobody hears of it: docs/webhooks.md
# Source: seen; what its man page json2file-go(8) says of checks is about the JSON, not about the file
set -euo pipefail

version=$(dpkg-query -W -f '${Version}' json2file-go)
echo "json2file-go $version"
[ "$version" = 1.15+b7 ]

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir disk
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

# The disk is a file system in memory, in a mount namespace that ends with this script.
cat >look.sh <<'SH'
set -euo pipefail
mount -t tmpfs -o size=64k tmpfs disk
mkdir disk/hub
J2F_BASEDIR=$PWD/disk J2F_DIRLIST=hub: J2F_HOST=127.0.0.1 J2F_PORT=$1 timeout 30 json2file-go >log 2>&1 &
trap 'kill $!' EXIT
printf '{"data":"%029997d"}' 0 >push
until (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; do sleep 0.1; done
post() {
  curl -s --max-time 10 -w '\n%{http_code}' -H 'content-type: application/json' --data-binary @push "http://127.0.0.1:$1/hub"
}
for i in 1 2 3; do
  answer=$(post "$1")
  file=$(sed -nE "s/.*saved to file '(.*)'/\1/p" <<<"$answer")
  echo "$i: ${answer%% to file*}, ${answer##*$'\n'}: $(stat -c %s "$file") bytes in its file"
done
rm -r disk/hub
answer=$(post "$1")
echo "its folder is gone: $(grep -o 'no such file or directory' <<<"$answer"), ${answer##*$'\n'}"
SH
unshare --map-root-user --mount timeout 40 bash look.sh "$port" | tee seen
diff seen - <<'SEEN'
1: JSON data saved, 200: 30008 bytes in its file
2: JSON data saved, 200: 30008 bytes in its file
3: JSON data saved, 200: 0 bytes in its file
its folder is gone: no such file or directory, 500
SEEN
echo 'as described'
