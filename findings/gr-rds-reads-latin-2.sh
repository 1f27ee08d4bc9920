#!/usr/bin/env bash
# Software: gr-rds 3.10 for GNU Radio 3.10.5.1 (Debian gr-rds 3.10-1+b7), its block "RDS Parser"
# Behaviour: It takes the bytes of radiotext, and of the programme service name, for ISO 8859-2. In RDS they are codes of a set of its own:
#   only what ASCII has is right, apart from the dollar sign. Of other letters come others, or control characters.
# Seen: 2026-11-30, radiotext whose bytes are those of set G0
#   Mira Hollund - Ebbe: Mira Hollund - Ebbe
#   Ämter, Öl: \u0143mter, \xd7l
#   Mädchen, Café: M\x91dchen, Caf\x82
#   5 $: 5 \u0164
# Hub: who looks at the text of the output rds with it sees wrong letters, though radios show the right ones: docs/outputs.md, "rds"
# Source: gr-rds, lib/parser_impl.cc, send_message (ISO-8859-2); EN 50067, annex E, figure E.1
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' gr-rds)
echo "gr-rds $version"
[ "$version" = 3.10-1+b7 ]

cat >receive.py <<'PY'
import queue

import pmt
import rds
from gnuradio import gr

G0 = {"Ä": 0xD1, "Ö": 0xD7, "ä": 0x91, "é": 0x82, "$": 0xAB}


class Groups(gr.basic_block):
    """Hands groups to the parser, as the decoder in front of it does."""

    def __init__(self):
        gr.basic_block.__init__(self, "groups", None, None)
        self.message_port_register_out(pmt.intern("out"))

    def send(self, *blocks):
        content = [byte for block in blocks for byte in divmod(block, 256)]
        group = pmt.init_u8vector(12, content + [ord(offset) for offset in "ABCD"])
        self.message_port_pub(pmt.intern("out"), pmt.cons(pmt.PMT_NIL, group))


class Panel(gr.basic_block):
    """Takes what the parser shows; 4 is radiotext."""

    def __init__(self):
        gr.basic_block.__init__(self, "panel", None, None)
        self.radiotexts = queue.Queue()
        self.message_port_register_in(pmt.intern("in"))
        self.set_msg_handler(pmt.intern("in"), self.take)

    def take(self, message):
        if pmt.to_long(pmt.tuple_ref(message, 0)) == 4:
            self.radiotexts.put(pmt.symbol_to_string(pmt.tuple_ref(message, 1)))


groups, panel, parser = Groups(), Panel(), rds.parser(False, False, 0)
graph = gr.top_block()
graph.msg_connect(groups, "out", parser, "in")
graph.msg_connect(parser, "out", panel, "in")
graph.start()

for text in ("Mira Hollund - Ebbe", "Ämter, Öl", "Mädchen, Café", "5 $"):
    codes = [G0.get(letter, ord(letter)) for letter in text.ljust(64)]
    for segment in range(16):
        a, b, c, d = codes[4 * segment : 4 * segment + 4]
        groups.send(0xD3C2, 2 << 12 | segment, a << 8 | b, c << 8 | d)
    for segment in range(16):
        shown = panel.radiotexts.get(timeout=20)
    print(f"{text}: {ascii(shown.rstrip())[1:-1]}")

graph.stop()
graph.wait()
PY
/usr/bin/python3 receive.py | tee seen
diff seen - <<'SEEN'
Mira Hollund - Ebbe: Mira Hollund - Ebbe
Ämter, Öl: \u0143mter, \xd7l
Mädchen, Café: M\x91dchen, Caf\x82
5 $: 5 \u0164
SEEN
echo 'as described'
