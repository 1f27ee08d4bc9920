#!/usr/bin/env bash
# Software: MariaDB 10.11.19 (Debian mariadb-server-core 1:10.11.19-0+deb12u1), with its own sql_mode
# Behaviour: As a datetime, an instant with an offset or Z is an error of INSERT. CAST, INSERT IGNORE and a generated column cut the offset
#   off, so it is another instant, with a warning at most. An offset of hours alone behind minutes counts as seconds, without an
#   error. CONVERT_TZ with the offset as a text of its own gives the right one.
# Seen: 2026-11-30
#   insert 2026-01-31T12:00:00+01:00: error
#   insert 2026-01-31T11:00:00Z: error
#   insert 2026-01-31T12:00+01: 2026-01-31 12:00:01
#   insert ignore 2026-01-31T12:00:00+01:00: 2026-01-31 12:00:00
#   cast 2026-01-31T12:00:00+01:00: 2026-01-31 12:00:00
#   generated column of json: 2026-01-31 12:00:00
#   convert_tz: 2026-01-31 11:00:00
# Hub: it hands on times as the publisher wrote them, with their offsets: docs/subscribers.md, "The newest event counts"
# Source: https://mariadb.com/kb/en/datetime/, whose formats have no offset; sql-common/my_time.c, str_to_datetime_or_date
set -euo pipefail

folder=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"
# It does not run as root.
as_user=()
if [ "$(id -u)" -eq 0 ]; then
  chown 65534:65534 .
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi

version=$(dpkg-query -W -f '${Version}' mariadb-server-core)
echo "mariadb-server-core $version"
[ "$version" = 1:10.11.19-0+deb12u1 ]

"${as_user[@]}" mariadb-install-db --no-defaults --datadir="$folder/data" --auth-root-authentication-method=normal --skip-test-db >/dev/null
"${as_user[@]}" mariadbd --no-defaults --datadir="$folder/data" --socket="$folder/socket" --pid-file="$folder/pid" --skip-networking \
  >log 2>&1 &
server=$!
for _ in $(seq 200); do
  [ ! -S socket ] || break
  sleep 0.1
done
ask() { mariadb --no-defaults --user=root --socket="$folder/socket" --database=radio -NB -e "$1" 2>/dev/null || echo error; }
mariadb --no-defaults --user=root --socket="$folder/socket" -e "create database radio"
ask "create table plain (start datetime); create table event (body json, start datetime as (json_value(body, '\$.start')))"

stored() { ask "delete from plain; $1 into plain values ('$2'); select start from plain"; }
{
  for time in 2026-01-31T12:00:00+01:00 2026-01-31T11:00:00Z 2026-01-31T12:00+01; do
    echo "insert $time: $(stored insert $time)"
  done
  time=2026-01-31T12:00:00+01:00
  echo "insert ignore $time: $(stored 'insert ignore' $time)"
  echo "cast $time: $(ask "select cast('$time' as datetime)")"
  echo "generated column of json: $(ask "insert into event (body) values ('{\"start\":\"$time\"}'); select start from event")"
  echo "convert_tz: $(ask "select convert_tz('2026-01-31T12:00:00', '+01:00', '+00:00')")"
} | tee seen
diff seen - <<'SEEN'
insert 2026-01-31T12:00:00+01:00: error
insert 2026-01-31T11:00:00Z: error
insert 2026-01-31T12:00+01: 2026-01-31 12:00:01
insert ignore 2026-01-31T12:00:00+01:00: 2026-01-31 12:00:00
cast 2026-01-31T12:00:00+01:00: 2026-01-31 12:00:00
generated column of json: 2026-01-31 12:00:00
convert_tz: 2026-01-31 11:00:00
SEEN
echo 'as described'
