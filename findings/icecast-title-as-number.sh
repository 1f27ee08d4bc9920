#!/usr/bin/env bash
# Software: Icecast 2.4.4 (Debian icecast2 2.4.4-4+b1), its page status-json.xsl
# Behaviour: A title that XSLT takes for a number is written without quotation marks, and so are "true" and "false" in any case. A
#   minus alone, digits with a dot before or behind them, and a minus before zeros are not JSON then: no reader can read
#   the page of all mounts while such a title is shown. A no-break space behind the title makes it a text.
# Seen: 2026-11-29
#   (1979) "title":1979 is JSON
#   (True) "title":true is JSON
#   (-) "title":- no JSON
#   (1.) "title":1. no JSON
#   (.38) "title":.38 no JSON
#   (- and a no-break space) is JSON
# Hub: a title or an idle text without artist may be one of these, so the output icecast adds a no-break space:
#   docs/outputs.md, "icecast".
# Source: icecast 2.4.4, web/xml2json.xslt, the templates "number" and "boolean"
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
chmod 777 "$folder"
cd "$folder"

version=$(dpkg-query -W -f '${Version}' icecast2)
echo "icecast2 $version"
[ "$version" = 2.4.4-4+b1 ]

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >icecast.xml <<XML
<icecast>
  <authentication><source-password>source</source-password>
    <admin-user>admin</admin-user><admin-password>admin</admin-password></authentication>
  <hostname>localhost</hostname>
  <listen-socket><port>$port</port><bind-address>127.0.0.1</bind-address></listen-socket>
  <mount><mount-name>/live.mp3</mount-name><charset>UTF-8</charset></mount>
  <paths><logdir>$folder</logdir><webroot>/usr/share/icecast2/web</webroot>
    <adminroot>/usr/share/icecast2/admin</adminroot></paths>
  <logging><loglevel>1</loglevel></logging>
</icecast>
XML
# It does not run as root.
as_user=()
[ "$(id -u)" -ne 0 ] || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
"${as_user[@]}" /usr/bin/icecast2 -c "$folder/icecast.xml" >/dev/null 2>&1 &
server=$!

cat >look.py <<'PY'
import base64, json, re, socket, sys, threading, time, urllib.parse, urllib.request

PORT = int(sys.argv[1])
FRAME = bytes([0xFF, 0xFB, 0x90, 0x64]) + bytes(413)


def login(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


def source():
    for _ in range(100):
        try:
            s = socket.create_connection(("127.0.0.1", PORT))
            break
        except OSError:
            time.sleep(0.1)
    head = f"SOURCE /live.mp3 HTTP/1.0\r\nAuthorization: {login('source:source')}\r\nContent-Type: audio/mpeg\r\n\r\n"
    s.sendall(head.encode())
    assert b"200" in s.recv(1000)

    def send():
        while True:
            s.sendall(FRAME)
            time.sleep(0.02)

    threading.Thread(target=send, daemon=True).start()


def page(title):
    query = urllib.parse.urlencode({"mode": "updinfo", "mount": "/live.mp3", "song": title})
    asked = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/admin/metadata?{query}", headers={"Authorization": login("admin:admin")}
    )
    urllib.request.urlopen(asked).read()
    time.sleep(0.5)
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/status-json.xsl") as answer:
        return answer.read().decode()


def kind(text):
    try:
        json.loads(text)
        return "is JSON"
    except ValueError:
        return "no JSON"


source()
for title in ["1979", "True", "-", "1.", ".38"]:
    text = page(title)
    print(f"({title})", re.search('"title":[^,]*', text).group(), kind(text), flush=True)
print("(- and a no-break space)", kind(page("-\u00a0")), flush=True)
PY
python3 look.py "$port" | tee seen

diff seen - <<'SEEN'
(1979) "title":1979 is JSON
(True) "title":true is JSON
(-) "title":- no JSON
(1.) "title":1. no JSON
(.38) "title":.38 no JSON
(- and a no-break space) is JSON
SEEN
echo 'as described'
