#!/usr/bin/env bash
# Software: VictoriaMetrics 1.79.5 (Debian victoria-metrics 1.79.5+ds1-2+b5) beside Prometheus 2.42.0 (Debian prometheus
#   2.42.0+ds-5+deb12u1), both scraping the same exporter
# Behaviour: Of a series that it has not had before, VictoriaMetrics takes the first value for a growth from 0: increase() and delta() have
#   it at once, and changes() has one more. In Prometheus they are 0 until the value changes. increase_prometheus() and the like of
#   VictoriaMetrics do as Prometheus does.
# Seen: 2026-11-30, a counter of 3, a gauge of 5, and a start time that changes twice
#   increase: Prometheus 0, VictoriaMetrics 3, increase_prometheus 0
#   delta: Prometheus 0, VictoriaMetrics 5, delta_prometheus 0
#   changes: Prometheus 2, VictoriaMetrics 3, changes_prometheus 2
# Hub: alerts of deploy/prometheus fire in vmalert for each node that is new to it, though nothing has happened: docs/operators.md, "Alerts"
# Source: VictoriaMetrics 1.79, app/vmselect/promql/rollup.go, rollupDelta and rollupChanges; docs/MetricsQL.md, "increase"
set -euo pipefail

folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"

for wanted in victoria-metrics=1.79.5+ds1-2+b5 prometheus=2.42.0+ds-5+deb12u1; do
  version=$(dpkg-query -W -f '${Version}' "${wanted%=*}")
  echo "${wanted%=*} $version"
  [ "$version" = "${wanted#*=}" ]
done

cat >exporter.py <<'PY'
import http.server
import sys
import time

began = time.monotonic()


class Node(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        starts = sum(time.monotonic() - began > seconds for seconds in (12, 20))
        text = f"failures_total 3\ndead_letters 5\nstart_time_seconds {1000 + starts}\n"
        self.send_response(200)
        self.send_header("content-type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Node).serve_forever()
PY
read -r node prometheus victoria < <(python3 -c '
import socket
free = [socket.socket() for _ in range(3)]
for s in free: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in free))')
printf '%s\n' 'global: { scrape_interval: 1s }' 'scrape_configs:' \
  "  - { job_name: hub, static_configs: [{ targets: ['127.0.0.1:$node'] }] }" >scrape.yml
timeout 60 python3 exporter.py "$node" &
timeout 60 prometheus --config.file=scrape.yml --storage.tsdb.path=prometheus \
  --web.listen-address="127.0.0.1:$prometheus" 2>/dev/null &
timeout 60 victoria-metrics -promscrape.config=scrape.yml -storageDataPath=victoria \
  -httpListenAddr="127.0.0.1:$victoria" 2>/dev/null &

cat >ask.py <<'PY'
import json
import sys
import time
import urllib.parse
import urllib.request

_, *ports = sys.argv


def ask(port, query):
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query, "nocache": 1})
    try:
        result = json.load(urllib.request.urlopen(url, timeout=5))["data"]["result"]
    except OSError:
        return None
    return float(result[0]["value"][1]) if result else None


# Both have seen the last start, and what followed.
while any(ask(port, "start_time_seconds offset 5s") != 1002 for port in ports):
    time.sleep(1)
for function, series in (("increase", "failures_total"), ("delta", "dead_letters"), ("changes", "start_time_seconds")):
    first, second = (ask(port, f"{function}({series}[5m])") for port in ports)
    alike = ask(ports[1], f"{function}_prometheus({series}[5m])")
    print(f"{function}: Prometheus {first:g}, VictoriaMetrics {second:g}, {function}_prometheus {alike:g}")
PY
timeout 55 python3 ask.py "$prometheus" "$victoria" | tee seen
diff seen - <<'SEEN'
increase: Prometheus 0, VictoriaMetrics 3, increase_prometheus 0
delta: Prometheus 0, VictoriaMetrics 5, delta_prometheus 0
changes: Prometheus 2, VictoriaMetrics 3, changes_prometheus 2
SEEN
echo 'as described'
