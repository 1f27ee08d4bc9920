#!/usr/bin/env bash
# Software: Liquidsoap 2.1.3 (Debian liquidsoap 2.1.3-2)
# Behaviour: An error in a function that was given to on_metadata or on_track ends the whole program, and with it the stream. Of a live
#   source source.remaining and source.duration are infinite, and json.stringify raises such an error for an infinite number. In
#   thread.run the error is written to the log, and the stream goes on. time.string knows %z, and neither %F nor %T: they come out as
#   they stand.
# Seen: 2026-11-29
#   source.remaining of a live source: inf
#   time.string: %FT%TZ, and 2026-01-31T12:00:00+0100
#   json.stringify of it in on_metadata: the program ended by itself
#   the same in thread.run: it still ran after 10 s
# Hub: a station that tells its titles from a callback goes off the air with the first live show: docs/clients/shell.md, "From
#   Liquidsoap".
# Source: liquidsoap 2.1.3, src/core/clock.ml ("Source %s failed while streaming"), src/libs/json.liq, and `liquidsoap -h time.string`
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' liquidsoap)
echo "liquidsoap $version"
[ "$version" = 2.1.3-2 ]
export HOME=$folder TZ=Europe/Berlin

cat >texts.liq <<'LIQ'
settings.init.allow_root.set(true)
print("source.remaining of a live source: #{source.remaining(sine())}")
noon = 1769857200.
print("time.string: "^time.string(time=noon, "%FT%TZ")^", and "^time.string(time=noon, "%Y-%m-%dT%H:%M:%S%z"))
shutdown()
LIQ

# A live source that gets a title after two seconds, and a function that is told of it.
live() {
  cat <<LIQ
settings.init.allow_root.set(true)
radio = insert_metadata(sine())
thread.run(delay=2., fun() -> radio.insert_metadata([("title", "Live")]))
def tell(m) =
  print(json.stringify({title=m["title"], length=source.remaining(radio)}))
end
radio.on_metadata($1)
output.dummy(radio)
LIQ
}
live 'tell' >callback.liq
live 'fun(m) -> thread.run(fun() -> tell(m))' >thread.liq

# 124: timeout had to end it.
ends() {
  local code=0
  timeout 10 liquidsoap "$1.liq" >"$1.log" 2>&1 || code=$?
  grep -q 'Infinite or Nan number cannot be represented' "$1.log"
  if [ "$code" -eq 124 ]; then echo 'it still ran after 10 s'; else echo 'the program ended by itself'; fi
}

{
  { timeout 20 liquidsoap texts.liq || true; } | grep -E '^(source|time)\.' | sort
  echo "json.stringify of it in on_metadata: $(ends callback)"
  echo "the same in thread.run: $(ends thread)"
} | tee seen

cat >expected <<'TEXT'
source.remaining of a live source: inf
time.string: %FT%TZ, and 2026-01-31T12:00:00+0100
json.stringify of it in on_metadata: the program ended by itself
the same in thread.run: it still ran after 10 s
TEXT
diff expected seen
echo 'as described'
