#!/usr/bin/env bash
# Software: VLC 3.0.24 (Debian vlc-bin 3.0.24-0+deb12u1) as a listener of Icecast 2.4.4 (Debian icecast2 2.4.4-4+b1)
# Behaviour: VLC shows the titles of an MP3 mount only over http, and only where the answer has a header icy-name or icy-genre: then
#   its older HTTP input takes over, which alone reads ICY. A source that sends no name has none of these, and over https VLC never
#   shows a title. <http-headers> in the <mount> of Icecast's configuration can bring the header, which <stream-name> does not.
# Seen: 2026-11-29, the title "A - T"
#   http, no name: no title
#   http, named by the source: A - T
#   http, named by <http-headers>: A - T
#   https, named by the source: no title
# Hub: a station sees the title of the output icecast in mpv, and none in VLC: docs/outputs.md, "What players show".
# Source: vlc 3.0, modules/access/http/resource.c, vlc_http_res_get_redirect ("icyx://", only where the resource is not secure)
set -euo pipefail

folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
chmod 777 "$folder"
cd "$folder"

versions=$(dpkg-query -W -f '${Package} ${Version}\n' icecast2 vlc-bin)
echo "$versions"
[ "$versions" = $'icecast2 2.4.4-4+b1\nvlc-bin 3.0.24-0+deb12u1' ]

openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost 2>/dev/null
cat cert.pem key.pem >both.pem
mkdir trusted
cp cert.pem trusted
chmod 644 both.pem trusted/cert.pem

read -r port secure < <(python3 -c '
import socket
free = [socket.socket() for _ in range(2)]
for s in free: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in free))')
cat >icecast.xml <<XML
<icecast>
  <limits><burst-size>0</burst-size></limits>
  <authentication><source-password>source</source-password>
    <admin-user>admin</admin-user><admin-password>admin</admin-password></authentication>
  <hostname>localhost</hostname>
  <listen-socket><port>$port</port><bind-address>127.0.0.1</bind-address></listen-socket>
  <listen-socket><port>$secure</port><bind-address>127.0.0.1</bind-address><ssl>1</ssl></listen-socket>
  <mount><mount-name>/configured.mp3</mount-name><http-headers><header name="icy-name" value="Radio" /></http-headers></mount>
  <paths><logdir>$folder</logdir><webroot>/usr/share/icecast2/web</webroot>
    <adminroot>/usr/share/icecast2/admin</adminroot><ssl-certificate>$folder/both.pem</ssl-certificate></paths>
  <logging><loglevel>1</loglevel></logging>
</icecast>
XML
# Neither runs as root.
as_user=()
[ "$(id -u)" -ne 0 ] || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
"${as_user[@]}" /usr/bin/icecast2 -c "$folder/icecast.xml" >/dev/null 2>&1 &
server=$!

cat >look.py <<'PY'
import base64, os, re, socket, subprocess, sys, threading, time, urllib.request

PORT, SECURE, *AS_USER = sys.argv[1:]
# A silent frame of MPEG 1, layer 3: 64 kbit/s, 44.1 kHz, mono.
FRAME = b"\xff\xfb\x50\xc4" + bytes(204)


def opened():
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", int(PORT)))
        except OSError:
            time.sleep(0.1)


def source(mount, *headers):
    login = base64.b64encode(b"source:source").decode()
    head = [f"SOURCE {mount} HTTP/1.0", f"Authorization: Basic {login}", "Content-Type: audio/mpeg", *headers, "", ""]
    s = opened()
    s.sendall("\r\n".join(head).encode())
    assert b"200" in s.recv(1000)

    def send():
        while True:
            s.sendall(FRAME * 8)
            time.sleep(0.2)

    threading.Thread(target=send, daemon=True).start()
    login = base64.b64encode(b"admin:admin").decode()
    url = f"http://127.0.0.1:{PORT}/admin/metadata?mode=updinfo&mount={mount}&song=A%20-%20T"
    urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": f"Basic {login}"})).read()


def shown(url):
    """What VLC's `info` has as the title, after twelve seconds of the stream."""
    trust = ["--no-gnutls-system-trust", f"--gnutls-dir-trust={os.getcwd()}/trusted"]
    vlc = subprocess.Popen(
        [*AS_USER, "env", f"HOME={os.getcwd()}", "LC_ALL=C.UTF-8", "vlc", "-I", "rc", "--aout", "dummy", *trust, url],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    for pause, command in ((12, "info"), (2, "quit")):
        time.sleep(pause)
        vlc.stdin.write(f"{command}\n")
        vlc.stdin.flush()
    said, _ = vlc.communicate(timeout=20)
    assert re.search(r"Codec: MPEG Audio", said), said  # it plays
    found = re.search(r"now_playing: (.*)", said)
    seen[url] = found[1].strip() if found else "no title"


source("/nameless.mp3")
source("/named.mp3", "Ice-Name: Radio")
source("/configured.mp3")
seen = {}
cases = {
    "http, no name": f"http://localhost:{PORT}/nameless.mp3",
    "http, named by the source": f"http://localhost:{PORT}/named.mp3",
    "http, named by <http-headers>": f"http://localhost:{PORT}/configured.mp3",
    "https, named by the source": f"https://localhost:{SECURE}/named.mp3",
}
looks = [threading.Thread(target=shown, args=[url]) for url in cases.values()]
for look in looks:
    look.start()
for look in looks:
    look.join()
for name, url in cases.items():
    print(f"{name}: {seen.get(url)}")
PY

timeout 55 python3 look.py "$port" "$secure" "${as_user[@]}" | tee seen

cat >expected <<'TEXT'
http, no name: no title
http, named by the source: A - T
http, named by <http-headers>: A - T
https, named by the source: no title
TEXT
diff expected seen
echo 'as described'
