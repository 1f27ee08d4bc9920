#!/usr/bin/env bash
# Software: PostgreSQL 15.20 (Debian postgresql-15 15.20-0+deb12u1)
# Behaviour: As a timestamptz, an instant with a fraction of the minute, which ISO 8601 permits, is another one: 11:00.5 counts as eleven
#   minutes and half a second after midnight, without an error. A comma before the fraction is an error; with dots, short
#   offsets and small letters it reads all right. A jsonb takes no U+0000, in no text of the event; json keeps it, until
#   somebody reads the text.
# Seen: 2026-11-30
#   2026-01-31T11:00:00.250Z: 2026-01-31 11:00:00.25
#   2026-01-31t12:00+01: 2026-01-31 11:00:00
#   2026-01-31T11:00:00,25Z: error
#   2026-01-31T11:00.5Z: 2026-01-31 00:11:00.5
#   jsonb with U+0000: error
#   json with U+0000: kept
#   json with U+0000, its title: error
# Hub: it hands on times and texts as the publisher wrote them, and accepts these: docs/subscribers.md, "The newest event counts"
# Source: PostgreSQL 15, "8.14. JSON Types" of its manual for U+0000; src/backend/utils/adt/datetime.c, DecodeTime ("mm:ss" where a
#   fraction follows two numbers)
set -euo pipefail

folder=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
bin=/usr/lib/postgresql/15/bin
trap 'as $bin/pg_ctl -D "$folder/data" -m immediate -w stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
cd "$folder"
[ "$(id -u)" != 0 ] || chown postgres .

version=$(dpkg-query -W -f '${Version}' postgresql-15)
echo "postgresql-15 $version"
[ "$version" = 15.20-0+deb12u1 ]

as $bin/initdb -D "$folder/data" -A trust -E UTF8 >/dev/null
as $bin/pg_ctl -D "$folder/data" -l "$folder/log" -o "-k $folder -c listen_addresses= -c timezone=UTC" -w start >/dev/null
ask() { as psql -h "$folder" -d postgres -Atq -c "$1" 2>/dev/null || echo error; }

event='{"title":"Ebbe\u0000Flut"}'
{
  for time in 2026-01-31T11:00:00.250Z 2026-01-31t12:00+01 2026-01-31T11:00:00,25Z 2026-01-31T11:00.5Z; do
    echo "$time: $(ask "select '$time'::timestamptz at time zone 'UTC'")"
  done
  echo "jsonb with U+0000: $(ask "select '$event'::jsonb")"
  echo "json with U+0000: $([ "$(ask "select '$event'::json")" = "$event" ] && echo kept)"
  echo "json with U+0000, its title: $(ask "select '$event'::json->>'title'")"
} | tee seen
diff seen - <<'SEEN'
2026-01-31T11:00:00.250Z: 2026-01-31 11:00:00.25
2026-01-31t12:00+01: 2026-01-31 11:00:00
2026-01-31T11:00:00,25Z: error
2026-01-31T11:00.5Z: 2026-01-31 00:11:00.5
jsonb with U+0000: error
json with U+0000: kept
json with U+0000, its title: error
SEEN
echo 'as described'
