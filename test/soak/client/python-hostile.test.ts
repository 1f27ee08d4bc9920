import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { shareCertificates } from '../../certificates.ts'
import { openScriptedBroker, type Turn } from '../../client/scripted-broker.ts'
import { openSlowLine } from '../../client/slow-line.ts'
import { largeMessage, openWebSocketBroker } from '../../client/websocket-broker.ts'
import { playing, station } from '../../events.ts'
import { listen } from '../../listen.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { publishing, pythons, settingsOf, startPython } from './python-programs.ts'

/*
 * The Python library with a hub that does what no hub does, and in a process that does what few do. Each script misbehaves
 * on the first connection and is a hub on the second.
 */

for (const { python, version } of pythons) {
  t.test(
    `paho ${version}: a hub that answers pings and acknowledges nothing is told of, and the event sent again`,
    async (t) => {
      const broker = await openScriptedBroker(t, ({ packet, connection, proceed }) => {
        if (connection > 1 || packet.cmd !== 'publish') proceed()
      })
      const lines = await run(
        t,
        python,
        broker,
        `
hub._LONGEST_SILENCE = 0.5
def told(problem):
    # What is acknowledged from now on may take long on a busy machine.
    hub._LONGEST_SILENCE = 20
    say(problem)
publisher = hub.connect_publisher(url=env["URL"], username="u", password="p", ca=env["CA"], institution=env["INSTITUTION"],
    on_problem=told)
say(publisher.publish(event)["outcome"])
publisher.close()
`,
      )
      t.match(lines, [/: the hub acknowledges nothing$/, 'published'])
      t.equal(broker.published.length, 2)
      t.same(
        broker.published[0]?.payload,
        broker.published[1]?.payload,
        'unchanged, so that the hub takes both as one',
      )
    },
  )

  const misbehaviours: Record<string, (turn: Turn) => void> = {
    'a packet without end': ({ write }) => {
      write(Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0x7f))
      for (let nth = 0; nth < 4; nth++) write(new Uint8Array(1024 * 1024))
    },
    'a message at QoS 2': ({ send }) =>
      send({ cmd: 'publish', topic: 'x', payload: 'x', qos: 2, messageId: 1, dup: false, retain: false }),
    'a second CONNACK': ({ send }) => send({ cmd: 'connack', returnCode: 0, sessionPresent: true }),
    'a packet of type 0': ({ write }) => write(Uint8Array.of(0x00, 0x00)),
    'a PUBLISH that ends in its topic': ({ write }) => write(Uint8Array.of(0x30, 0x01, 0x00)),
    'a PUBACK without a packet id': ({ write }) => write(Uint8Array.of(0x40, 0x00)),
    'a length of five bytes': ({ write }) => write(Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0xff, 0x01)),
  }
  t.test(`paho ${version}: after what no hub sends, the event goes out on the next connection`, async (t) => {
    await Promise.all(
      Object.entries(misbehaviours).map(async ([what, misbehave]) => {
        const broker = await openScriptedBroker(t, (turn) => {
          if (turn.connection === 1 && turn.packet.cmd === 'publish') misbehave(turn)
          else turn.proceed()
        })
        const lines = await run(
          t,
          python,
          broker,
          'with connect() as publisher: say(publisher.publish(event)["outcome"])',
        )
        t.same(lines, ['problem connection.lost', 'published'], what)
      }),
    )
  })

  t.test(
    `paho ${version}: a login that is renewed while the connection is lost leaves none behind`,
    async (t) => {
      let cutFirst = () => {}
      const held: Turn[] = []
      const broker = await openScriptedBroker(t, (turn) => {
        if (turn.connection === 1) cutFirst = turn.cut
        if (turn.connection === 1 || turn.packet.cmd !== 'connect') return turn.proceed()
        held.push(turn)
        // The second connection renews the login. Meanwhile the first one is lost, and a third one is opened.
        if (held.length === 1) cutFirst()
        else held[0]?.proceed()
      })
      const settings = settingsOf({ mqttPort: 0, caPath: broker.ca }, { username: 'u', password: 'p' })
      const text = `
states = []
changed = threading.Condition()
def told(state):
    with changed:
        states.append(state)
        changed.notify()
subscriber = hub.connect_subscriber(url=env["URL"], username="u", password="p", ca=env["CA"], filters=["radio/#"],
    on={"state": told}, on_problem=lambda _: None)
with changed:
    changed.wait_for(lambda: states == ["live"])
subscriber._loop.soon(subscriber._connection.begin, True)
with changed:
    changed.wait_for(lambda: states == ["live", "lost", "live"])
subscriber.close()
say("closed")
input()
`
      const program = await startPython(t, python, publishing + text, { ...settings, URL: broker.url })
      await program.line(/^closed$/)
      await broker.left()
      program.write('\n')
      t.equal(await program.ended, 0, program.lines.join('\n'))
    },
  )

  t.test(`paho ${version}: a mistake in this program is told as one, and costs no connection`, async (t) => {
    const broker = await openScriptedBroker(t, ({ proceed }) => proceed())
    const lines = await run(
      t,
      python,
      broker,
      `
read = hub._read_report
def mistaken(payload):
    hub._read_report = read
    raise TypeError("a mistake")
hub._read_report = mistaken
with connect(report_timeout=0.2) as publisher: say(publisher.publish(event)["outcome"])
`,
    )
    t.equal(lines.at(-1), 'published')
    t.match(lines.join('\n'), 'TypeError: a mistake')
    t.notMatch(lines.join('\n'), 'connection.lost')
  })

  t.test(`paho ${version}: a line that takes 4 s for a large event is slow, not dead`, async (t) => {
    const broker = await openScriptedBroker(t, ({ proceed }) => proceed())
    const line = await openSlowLine(t, Number(new URL(broker.url).port), 100_000)
    line.slowDown()
    const lines = await run(
      t,
      python,
      { url: `mqtts://localhost:${line.port}`, ca: broker.ca },
      `
hub._LONGEST_SILENCE, hub._KEEP_ALIVE, hub._SLOWEST_LINE = 2, 2, 100_000
with connect() as publisher:
    say(publisher.publish({**event, "title": "x" * 400_000})["outcome"])
`,
    )
    t.same(lines, ['published'])
    t.equal(broker.published.length, 1, 'sent once')
  })

  t.test(`paho ${version}: a WebSocket message of 20 MiB ends the connection`, async (t) => {
    const broker = await openWebSocketBroker(t, (send, connection) =>
      send(
        connection === 1 ? Buffer.concat(Array(20).fill(largeMessage(1, 1024 * 1024))) : largeMessage(2, 10),
      ),
    )
    const lines = await run(
      t,
      python,
      broker,
      `
with hub.connect_subscriber(url=env["URL"], username="u", password="p", ca=env["CA"], filters=["radio/#"],
        on_problem=lambda problem: say(problem.code)) as subscriber:
    for message in subscriber:
        if message.livestream_id == "2":
            break
say(len(subscriber.now_playing))
`,
    )
    t.same(lines, ['connection.lost', '2'])
  })

  t.test(`paho ${version}: a hub that invents livestreams fills nothing, and is told of once`, async (t) => {
    const broker = await openScriptedBroker(t, ({ packet, send, proceed }) => {
      proceed()
      if (packet.cmd !== 'subscribe') return
      for (const name of [
        'quiet',
        'lively',
        ...Array.from({ length: 9 }, (_, nth) => `${nth}`),
        'lively',
        'last',
      ]) {
        const payload = JSON.stringify(playing(station(), { title: name }))
        const topic = `radio/${name}/track/playing`
        send({ cmd: 'publish', topic, payload, qos: 0, dup: false, retain: false })
      }
    })
    const lines = await run(
      t,
      python,
      broker,
      `
hub._MAX_LIVESTREAMS = 5
with hub.connect_subscriber(url=env["URL"], username="u", password="p", ca=env["CA"], filters=["radio/#"],
        on_problem=lambda problem: say(problem.code)) as subscriber:
    for message in subscriber:
        if message.livestream_id == "last":
            break
    say(*subscriber.now_playing)
    hub._MAX_CHARACTERS = 100
    subscriber._loop._loop.call_soon_threadsafe(subscriber._received, "radio/new/track/playing", env["EVENT"].encode(), False)
    while "new" not in list(subscriber.now_playing):
        time.sleep(0.01)
    say(*subscriber.now_playing)
`,
    )
    t.same(lines, ['livestreams.full', '6 7 8 lively last', 'last new'])
  })

  t.test(`paho ${version}: a SUBACK that is wrong grants nothing`, async (t) => {
    await Promise.all(
      [[], [1, 1], [0x80], [0xff]].map(async (granted) => {
        const broker = await openScriptedBroker(t, ({ packet, connection, write, proceed }) => {
          if (connection > 1 || packet.cmd !== 'subscribe') return proceed()
          const { messageId = 0 } = packet
          write(Uint8Array.of(0x90, 2 + granted.length, messageId >> 8, messageId & 0xff, ...granted))
        })
        const lines = await run(
          t,
          python,
          broker,
          `
publisher = connect()
try:
    say(publisher.publish(event)["outcome"])
except hub.ClientError as error:
    say(error.code)
publisher.close()
`,
        )
        const isDenied = lines.includes('feedback.denied')
        t.equal(isDenied || lines.includes('published'), true, lines.join())
        if (granted[0] === 0x80) t.ok(isDenied)
        t.equal(broker.published.length, isDenied ? 0 : 1, `${granted}`)
      }),
    )
  })

  t.test(
    `paho ${version}: what is no report is ignored, and a report of a thousand errors has a short text`,
    async (t) => {
      const errors = Array.from({ length: 1_000 }, (_, nth) => ({
        path: `.services.${nth}.externalId`,
        message: `must be a crid, ${'x'.repeat(500)}`,
        errorCode: 'pattern.openapi.validation',
      }))
      const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
        if (packet.cmd !== 'publish') return proceed()
        const topic = 'feedback/x'
        for (const payload of [
          '',
          'no JSON',
          '\0'.repeat(1000),
          'null',
          '['.repeat(100_000),
          Buffer.of(0xff, 0xfe),
        ]) {
          send({ cmd: 'publish', topic, payload, qos: 0, dup: false, retain: false })
        }
        report(packet, { errors: 'none' })
        report(packet, { outcome: 'invalid', errors: [{ path: '.title', message: 7, errorCode: 'type' }] })
        report(packet, { outcome: 'invalid', errors: [{}] })
        report(packet, { outcome: ['invalid'] })
        report(packet, { outcome: 'invalid', errors })
        send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
      })
      const lines = await run(
        t,
        python,
        broker,
        `
with connect() as publisher:
    try:
        publisher.publish(event)
    except hub.EventRefused as refused:
        say(len(refused.errors), len(str(refused)) < 3_000, str(refused)[-12:])
`,
      )
      t.same(lines, ['1000 True and 995 more'])
    },
  )

  t.test(`paho ${version}: a client in a forked process says so, and does not hang`, async (t) => {
    const broker = await openScriptedBroker(t, ({ proceed }) => proceed())
    const lines = await run(
      t,
      python,
      broker,
      `
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork beside threads
publisher = connect(outbox="outbox")
say(publisher.publish(event)["outcome"])
child = os.fork()
if child == 0:
    for attempt in (lambda: publisher.publish(event), publisher.close, lambda: connect(outbox="outbox")):
        try:
            attempt()
        except hub.ClientError as error:
            say(error.code)
    os._exit(0)
os.waitpid(child, 0)
say(publisher.publish(event)["outcome"])
publisher.close()
`,
    )
    t.same(lines, ['published', 'closed', 'closed', 'outbox.locked', 'published'])
  })

  t.test(
    `paho ${version}: another copy of the library in the process gets no outbox that is in use`,
    async (t) => {
      const broker = await openScriptedBroker(t, ({ proceed }) => proceed())
      const lines = await run(
        t,
        python,
        broker,
        `
import importlib.util, sys
spec = importlib.util.spec_from_file_location("copied", hub.__file__)
copied = sys.modules["copied"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(copied)
first = hub._Outbox("outbox")
try:
    copied._Outbox("outbox")
except copied.ClientError as error:
    say(error.code)
first.close()
copied._Outbox("outbox").close()
say("released")
`,
      )
      t.same(lines, ['outbox.locked', 'released'])
    },
  )
}

for (const { python, version } of pythons.slice(-1)) {
  t.test(`answers over HTTPS that are anything but right are no log-in (paho ${version})`, async (t) => {
    const lines = await run(
      t,
      python,
      { url: 'mqtts://localhost:1', ca: await caOf(t) },
      `
def answering(body, status=200):
    return type("Http", (), {"ask": lambda *_: hub._Answer(status, body, None, None)})()
def attempt(call):
    try:
        say(call())
    except hub.ClientError as error:
        say(error.code, error)
    except hub.EventRefused as refused:
        say(refused)
for fields in ({"username": "x" * 70_000, "password": "p"}, {"username": "u", "password": {}}):
    logins = hub._HourlyLogins("https://hub", None)
    logins._http = answering({**fields, "expiresAt": {}})
    attempt(lambda: logins.log_in(False).is_refused)
attempt(lambda: hub.connect_publisher(url=env["URL"], username="x" * 65_536, password="p", ca=env["CA"],
    institution=env["INSTITUTION"]))
publisher = hub.create_https_publisher(url="https://localhost:1", email="e", password="p", ca=env["CA"])
publisher._token = lambda _: "t"
publisher._http = answering({"statuses": {"blocked": "x"}, "errors": [{"path": {}}]}, 201)
attempt(lambda: publisher.publish(event))
`,
    )
    t.same(lines, [
      'option.invalid username must have at most 65,535 bytes',
      'False',
      'option.invalid username must have at most 65,535 bytes',
      'failed: {} None',
    ])
  })

  t.test(
    `an answer over HTTPS that never ends is given up, and one that is too long (paho ${version})`,
    async (t) => {
      const ca = await caOf(t)
      const read = (name: string) => readFileSync(join(dirname(ca), name))
      const server = createServer(
        { key: read('server-key.pem'), cert: read('server.pem') },
        ({ url, socket }, response) => {
          if (url?.startsWith('/headers')) socket.write('HTTP/1.1 200 OK\r\n')
          const drip = setInterval(() => {
            if (url?.startsWith('/headers')) socket.write('x')
            else response.write('x'.repeat(url?.startsWith('/slow') ? 1 : 400_000))
          }, 50)
          socket.on('close', () => clearInterval(drip))
        },
      )
      const port = await listen(t, server)
      const lines = await run(
        t,
        python,
        { url: `https://localhost:${port}`, ca },
        `
hub._Http._PATIENCE = 0.5
for path in ("/slow", "/headers", "/long"):
    publisher = hub.create_https_publisher(url=env["URL"] + path, email="e", password="p", ca=env["CA"], patience=0.1)
    try:
        publisher.publish(event)
    except hub.ClientError as error:
        say(error.code, error)
`,
      )
      t.match(lines, [
        /^hub\.unavailable .*(timed out|too long)/,
        /^hub\.unavailable .*(timed out|too long)/,
        'hub.unavailable the answer is too long',
      ])
    },
  )
}

/** Runs a program to its end. */
async function run(t: Test, python: string, { url, ca }: { url: string; ca: string }, text: string) {
  const settings = settingsOf({ mqttPort: 0, caPath: ca }, { username: 'u', password: 'p' })
  const program = await startPython(t, python, publishing + text, { ...settings, URL: url })
  t.equal(await program.ended, 0, program.lines.join('\n'))
  // Where many tests run, asyncio says that a step was slow.
  return program.lines.filter((line) => !line.startsWith('Executing '))
}

/** The path of a CA, beside the certificate of localhost that it signed. */
async function caOf(t: Test): Promise<string> {
  const certs = await temporaryDirectory(t)
  await shareCertificates(certs)
  return join(certs, 'ca.pem')
}
