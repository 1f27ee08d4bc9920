#!/usr/bin/env bash
# Software: paho for Python 1.6.1-1 (Debian's python3-paho-mqtt); a broker of 40 lines in Python answers it
# Behaviour: at QoS 2 with a session that stays, a message whose PUBREC has come goes on with PUBREL when the connection is
#   back [MQTT-4.4.0-1]. If a try to connect fails in between, it is published once more instead, without DUP and with the
#   same packet identifier: whoever has got PUBREL before takes it for a new message.
# Seen: 2026-11-30
#   back at the first try: PUBREL 1
#   back at the second try: PUBLISH 1, DUP 0
# Hub: it has released the identifier at PUBREL, so listeners get such an event twice, with one id.
#   docs/publishers.md, "Acknowledgement"
# Source: _messages_reconnect_reset_out in client.py runs before each try: the first makes wait_for_pubcomp resend_pubrel,
#   the second makes publish of that
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
installed=$(dpkg-query -W -f '${Version}' python3-paho-mqtt)
echo "paho for Python $installed"
[ "$installed" = 1.6.1-1 ]
cd "$folder"
cat > look.py <<'END'
import socket
import threading

import paho.mqtt.client as mqtt


def listen(port=0):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(('127.0.0.1', port))
    server.listen()
    return server


def packet(reader):
    head = reader.read(2)
    return head[0], reader.read(head[1])


def accept(server, session_present):
    connection, _ = server.accept()
    reader = connection.makefile('rb')
    packet(reader)
    connection.sendall(bytes([0x20, 2, session_present, 0]))
    return connection, reader


for name, failures in [('first', 0), ('second', 1)]:
    server = listen()
    port = server.getsockname()[1]
    client = mqtt.Client(client_id='c', clean_session=False)
    client.reconnect_delay_set(1, 1)
    failed = threading.Semaphore(0)
    client.on_connect_fail = lambda *_: failed.release()
    client.connect('127.0.0.1', port)
    client.loop_start()
    connection, reader = accept(server, 0)
    client.publish('t', 'm', qos=2)
    packet(reader)
    connection.sendall(bytes([0x50, 2, 0, 1]))
    packet(reader)
    if failures:
        server.close()
    reader.close()
    connection.close()
    if failures:
        failed.acquire(timeout=20)
        server = listen(port)
    connection, reader = accept(server, 1)
    first, rest = packet(reader)
    kind = first >> 4
    said = 'PUBREL 1' if kind == 6 else f'PUBLISH {rest[4]}, DUP {first >> 3 & 1}' if kind == 3 else str(kind)
    print(f'back at the {name} try: {said}')
    client.disconnect()
    client.loop_stop()
    reader.close()
    connection.close()
    server.close()
END
timeout 50 /usr/bin/python3 look.py | tee seen
diff seen - <<'END'
back at the first try: PUBREL 1
back at the second try: PUBLISH 1, DUP 0
END
echo 'as described'
