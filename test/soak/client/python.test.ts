import { execFileSync } from 'node:child_process'
import { appendFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { errorCodes } from '../../../client/errors.ts'
import { connectPublisher } from '../../../client/node.ts'
import { pushRefusals } from '../../../client/verify-push.ts'
import { addUser, openApi, password } from '../../bridge-https/api.ts'
import { games, play } from '../../client/newest-first-games.ts'
import { openScriptedBroker } from '../../client/scripted-broker.ts'
import { codeBlock, readPage } from '../../documentation.ts'
import { control, institutions, playing, station } from '../../events.ts'
import { projectFile } from '../../root.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode, type Issued, startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { publishing, pythons, type Settings, settingsOf, startPython } from './python-programs.ts'

const [own = '', foreign = ''] = institutions
const skip = pythons.length === 0 && 'NOT TESTED: no Python has paho (apt-get install python3-paho-mqtt)'

t.test('the codes of errors are those of the JavaScript library', { skip }, async (t) => {
  for (const { python } of pythons) {
    const asked =
      'import json, now_playing_hub as hub; print(json.dumps([hub.ERROR_CODES, hub.PUSH_REFUSALS]))'
    const env = { PYTHONPATH: projectFile('client/python'), PYTHONDONTWRITEBYTECODE: '1' }
    t.same(JSON.parse(execFileSync(python, ['-c', asked], { env, encoding: 'utf8' })), [
      errorCodes,
      Object.fromEntries(
        Object.entries(pushRefusals).map(([code, { status, meaning }]) => [code, [status, meaning]]),
      ),
    ])
  }
})

for (const { python, version } of pythons) {
  const start = (t: Test, text: string, settings: Settings) =>
    startPython(t, python, publishing + text, settings)

  t.test(`paho ${version}: publish returns the report, or raises what the hub says`, async (t) => {
    const hub = await startTestHub(t)
    const program = await start(
      t,
      `
with connect() as publisher:
    report = publisher.publish(event, timeout=20)
    say("report", report["outcome"], report["warnings"][0]["errorCode"], report["id"] is not None)
    say("check", publisher.check(event, timeout=20)["dryRun"])
    for wrong in ({**event, "length": "long"}, {**event, "title": "x" * 500_000}):
        try:
            publisher.publish(wrong, timeout=20)
        except hub.EventRefused as refused:
            say("refused", refused.outcome, refused.errors[0]["errorCode"], refused)
    try:
        publisher.publish({"event": object()})
    except hub.ClientError as error:
        say("error", error.code)
try:
    publisher.publish(event)
except hub.ClientError as error:
    say("error", error.code)
`,
      settingsOf(hub, await hub.publisher([own]), playing(station(), { title: 'track.mp3' })),
    )
    t.equal(await program.ended, 0)
    t.match(program.lines, [
      'report published title.file True',
      'check True',
      /^refused invalid type\.openapi\.validation invalid: \.length The value has the wrong type/,
      'refused invalid payload.size invalid: . must have at most 409600 bytes',
      'error event.unreadable',
      'error closed',
    ])
  })

  for (const [what, code, loginOf] of [
    ['a wrong password', 'login.refused', (login: Issued) => ({ ...login, password: 'wrong' })],
    ['the feedback of others', 'feedback.denied', (login: Issued) => login],
  ] as const) {
    t.test(`paho ${version}: ${what} is told at once`, async (t) => {
      const hub = await startTestHub(t)
      const login = await hub.publisher([code === 'feedback.denied' ? foreign : own])
      const program = await start(
        t,
        `
publisher = connect()
for _ in range(2):
    try:
        publisher.publish(event)
    except hub.ClientError as error:
        say("error", error.code)
publisher.close()
`,
        settingsOf(hub, loginOf(login)),
      )
      t.equal(await program.ended, 0)
      t.same(program.lines.toSorted(), [`error ${code}`, `error ${code}`, `problem ${code}`])
    })
  }
}

for (const { python, version } of pythons) {
  t.test(`paho ${version}: the programs of the page publish, say why not, and read`, async (t) => {
    const hub = await startTestHub(t)
    const login = await hub.publisher([own])
    const reader = await hub.subscriber(`radio/${station().id}/#`)
    const block = (having: string) => codeBlock(readPage('clients/python.md'), 'python', having)
    const settings = {
      HOST: 'localhost',
      PORT: String(hub.mqttPort),
      CA: hub.caPath,
      INSTITUTION: own,
      LIVESTREAM: station().id,
      PUB_USER: login.username,
      PUB_PASSWORD: login.password,
      SUB_USER: reader.username,
      SUB_PASSWORD: reader.password,
    }
    const listener = await startPython(t, python, block('connect_subscriber('), settings)
    const text = block('TrackEvent')
    const publisher = await startPython(t, python, text, settings)
    t.equal(await publisher.ended, 0)
    t.same(publisher.lines, ['published de.org.hub.v1.radio.track.playing'])
    await listener.line(/^Mira Hollund - Nach dem Sturm$/)
    const wrong = await startPython(t, python, text.replace('"length": 233', '"length": "233"'), settings)
    t.equal(await wrong.ended, 1)
    t.match(wrong.complaints, [/^invalid \.length /])
    const refused = await startPython(t, python, text, { ...settings, PUB_PASSWORD: 'wrong' })
    t.equal(await refused.ended, 1)
    t.ok(refused.lines.some((line) => line.startsWith('login.refused: ')))
    await hub.ask('credentials.revoke', { username: reader.username })
    t.equal(await listener.ended, 1)
  })
}

for (const { python, version } of pythons) {
  const start = (t: Test, text: string, settings: Settings, cwd?: string) =>
    startPython(t, python, publishing + text, settings, cwd)

  t.test(`paho ${version}: a node that is killed loses and doubles nothing`, async (t) => {
    const home = await temporaryDirectory(t)
    const first = await spawnHub(t, home, { HUB_PUBLISH_RATE: '0' })
    const account = { role: 'publisher', label: 'test', institutions: [own] }
    const login = await askNode<Issued>(first.adminSocket, 'credentials.add', account)
    const port = String(first.mqttPort)
    const program = await start(
      t,
      `
with connect() as publisher:
    futures = [publisher.submit({**event, "title": f"title {number}"}) for number in range(2_000)]
    futures[100].result()
    say("under way")
    ids = [future.result(60)["id"] for future in futures]
    say("published", len(ids), len(set(ids)))
`,
      settingsOf(first, login),
    )
    await program.line(/^under way$/)
    await first.stop('SIGKILL')
    await spawnHub(t, home, { HUB_MQTT_PORT: port, HUB_PUBLISH_RATE: '0' })
    await program.line(/^published 2000 2000$/)
    t.equal(await program.ended, 0)
    t.ok(program.lines.includes('problem connection.lost'))
  })

  t.test(`paho ${version}: a revoked credential ends what waits`, async (t) => {
    const hub = await startTestHub(t)
    const login = await hub.publisher([own])
    const program = await start(
      t,
      `
publisher = connect()
publisher.publish(event)
say("published")
while True:
    try:
        publisher.publish(event, timeout=20)
        time.sleep(0.05)
    except hub.ClientError as error:
        say("error", error.code)
        break
publisher.close()
`,
      settingsOf(hub, login),
    )
    await program.line(/^published$/)
    await hub.ask('credentials.revoke', { username: login.username })
    await program.line(/^error login\.refused$/)
    t.equal(await program.ended, 0)
  })

  t.test(
    `paho ${version}: an event without a report is sent once more, unchanged, then unknown`,
    async (t) => {
      const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
        if (packet.cmd !== 'publish') return proceed()
        // Of others: they settle nothing.
        report(packet, { clientId: 'another-studio', outcome: 'blocked' })
        report(packet, { dryRun: true, outcome: 'blocked' })
        send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
      })
      const program = await start(
        t,
        `
with connect(report_timeout=0.05) as publisher:
    say(publisher.publish(event))
`,
        {
          ...settingsOf({ mqttPort: 0, caPath: broker.ca }, { username: 'u', password: 'p' }),
          URL: broker.url,
        },
      )
      t.equal(await program.ended, 0)
      t.same(program.lines, ["{'outcome': 'unknown', 'acknowledged': True}"])
      t.equal(broker.published.length, 2)
      t.same(broker.published[0]?.payload, broker.published[1]?.payload)
    },
  )

  t.test(
    `paho ${version}: a hub that never answers SUBSCRIBE is left, told of, and tried again`,
    async (t) => {
      let isAnswering = false
      const broker = await openScriptedBroker(t, ({ packet, proceed }) => {
        if (isAnswering || packet.cmd !== 'subscribe') proceed()
      })
      const program = await start(
        t,
        `
said = say
def say(*words):
    # What is answered from now on may take long on a busy machine.
    hub._CONNECT_TIMEOUT = 20
    said(*words)
hub._CONNECT_TIMEOUT = 0.2
with connect() as publisher:
    say(publisher.publish(event)["outcome"])
input()
hub._CONNECT_TIMEOUT = 0.2
with hub.connect_subscriber(url=env["URL"], username="u", password="p", ca=env["CA"], filters=["radio/#"],
        on_problem=lambda problem: say("reader", problem)) as reader:
    while reader.state != "live":
        time.sleep(0.01)
`,
        {
          ...settingsOf({ mqttPort: 0, caPath: broker.ca }, { username: 'u', password: 'p' }),
          URL: broker.url,
        },
      )
      await program.line(/^problem/)
      isAnswering = true
      await program.line(/^published$/)
      isAnswering = false
      program.write('\n')
      await program.line(/^reader/)
      isAnswering = true
      t.equal(await program.ended, 0)
      t.match(program.lines, ['problem connection.lost', 'published', /^reader .*: no answer in time$/])
    },
  )

  t.test(`paho ${version}: an event is not sent after the machine has slept for too long`, async (t) => {
    const broker = await openScriptedBroker(t, ({ connection, proceed, cut }) =>
      connection > 1 ? proceed() : cut(),
    )
    const program = await start(
      t,
      `
with connect() as publisher:
    future = publisher.submit(event)
    # While a machine sleeps, its monotonic clock stands still (Linux).
    awake = time.time
    time.time = lambda: awake() + 3600
    try:
        future.result()
    except hub.ClientError as error:
        say("error", error.code)
`,
      {
        ...settingsOf({ mqttPort: 0, caPath: broker.ca }, { username: 'u', password: 'p' }),
        URL: broker.url,
      },
    )
    t.equal(await program.ended, 0)
    t.same(program.lines, ['problem connection.lost', 'error superseded'])
    t.same(broker.published, [])
  })

  t.test(`paho ${version}: a good title is sent after all if the newer one is refused`, async (t) => {
    const home = await temporaryDirectory(t)
    let isDeaf = true
    const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
      if (packet.cmd !== 'publish' || !`${packet.payload}`.includes('broken')) return proceed()
      if (isDeaf) return
      report(packet, { outcome: 'invalid' })
      send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
    })
    const settings = {
      ...settingsOf({ mqttPort: 0, caPath: broker.ca }, { username: 'u', password: 'p' }),
      URL: broker.url,
    }
    const minute = (minute: number) => `"start": "2026-01-31T12:0${minute}:00Z"`
    const killed = await start(
      t,
      `
publisher = connect(outbox="outbox")
for fields in ({"title": "oldest", ${minute(0)}}, {"title": "good", ${minute(1)}}, {"title": "broken", ${minute(2)}}):
    publisher.submit({**event, **fields})
publisher.submit({**event, "event": "de.org.hub.v1.radio.control", "validUntil": "2026-01-31T12:00:00Z"})
while True:
    time.sleep(1)
`,
      settings,
      home,
    )
    await broker.count(1)
    killed.kill()
    await killed.ended
    isDeaf = false
    const next = await start(
      t,
      `
publisher = connect(outbox="outbox")
left = publisher.restored
check = publisher.check({**event, "title": "checked"})
for restored in left:
    try:
        say(restored.event["title"], restored.result.result(20)["outcome"])
    except (hub.EventRefused, hub.ClientError) as error:
        say(restored.event["title"], getattr(error, "code", "refused"), error)
publisher.close()
with open("outbox") as file:
    settled = [json.loads(line)["settled"] for line in file if "settled" in line]
say("settled", settled.index(1) < settled.index(2))
`,
      settings,
      home,
    )
    t.equal(await next.ended, 0)
    t.same(next.lines, [
      'oldest superseded newer: an event with playlistItemId "item-1" is published for all its livestreams',
      'good published',
      'broken refused invalid: ',
      'settled True',
    ])
    const titles = broker.published
      .filter(({ topic }) => !topic.endsWith('/check'))
      .map(({ payload }) => JSON.parse(`${payload}`).title)
    t.same(titles, ['broken', 'broken', 'good'])
  })

  t.test(
    `paho ${version}: what nobody waits for is told, and close does not wait for a refused log-in`,
    async (t) => {
      const home = await temporaryDirectory(t)
      let isRefused = true
      const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
        if (packet.cmd === 'connect' && isRefused) {
          return send({ cmd: 'connack', returnCode: 4, sessionPresent: false })
        }
        if (packet.cmd !== 'publish') return proceed()
        report(packet, { outcome: 'invalid' })
        send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
      })
      const settings = {
        ...settingsOf({ mqttPort: 0, caPath: broker.ca }, { username: 'u', password: 'p' }),
        URL: broker.url,
      }
      const first = await start(
        t,
        `
publisher = connect(outbox="outbox")
publisher.submit(event)
say(len(publisher.close(600)), "left")
# Python may crash where it ends beside a thread that runs.
say(len(threading.enumerate()), "thread")
`,
        settings,
        home,
      )
      t.equal(await first.ended, 0)
      t.same(first.lines.toSorted(), ['1 left', '1 thread', 'problem login.refused'])
      isRefused = false
      const next = await start(t, 'connect(outbox="outbox").close(600)', settings, home)
      t.equal(await next.ended, 0)
      t.same(next.lines, ['problem event.refused'])
    },
  )

  t.test(
    `paho ${version}: an untrusted certificate, and a port that is not for MQTT, are told`,
    async (t) => {
      const hub = await startTestHub(t)
      const settings = settingsOf(hub, await hub.publisher([own]))
      const text = `
told = threading.Event()
def tell(problem):
    say(problem.code, str(problem).rpartition(": ")[2])
    told.set()
publisher = hub.connect_publisher(url=env["URL"], username="u", password="p", ca=env.get("TRUSTED"),
    institution=env["INSTITUTION"], on_problem=tell)
told.wait(20)
publisher.close(0)
`
      const untrusted = await start(t, text, settings)
      t.equal(await untrusted.ended, 0)
      // paho then warns of a socket that it leaves open.
      t.equal(untrusted.lines[0], 'connection.lost set ca to the CA of the hub')
      const url = `mqtts://localhost:${hub.httpsPort}`
      const other = await start(t, text, { ...settings, URL: url, TRUSTED: hub.caPath })
      t.equal(await other.ended, 0)
      t.same(other.lines, ['connection.lost this is no MQTT port, another protocol answers'])
    },
  )

  t.test(`paho ${version}: CONNACK 3 is tried again, 4 is the end`, async (t) => {
    const codes: number[] = []
    const broker = await openScriptedBroker(t, ({ packet, connection, send }) => {
      if (packet.cmd !== 'connect') return
      codes.push(connection)
      send({ cmd: 'connack', returnCode: connection === 1 ? 3 : 4, sessionPresent: false })
    })
    const program = await start(
      t,
      `
publisher = connect()
try:
    publisher.publish(event)
except hub.ClientError as error:
    say("error", error)
publisher.close()
`,
      {
        ...settingsOf({ mqttPort: 0, caPath: broker.ca }, { username: 'u', password: 'p' }),
        URL: broker.url,
      },
    )
    t.equal(await program.ended, 0)
    t.same(program.lines.toSorted(), [
      'error the hub refused the log-in: CONNACK 4',
      'problem connection.lost',
      'problem login.refused',
    ])
    t.same(codes, [1, 2])
  })

  t.test(`paho ${version}: a program that is killed leaves its events in the outbox`, async (t) => {
    const home = await temporaryDirectory(t)
    const hub = await startTestHub(t)
    const settings = settingsOf(hub, await hub.publisher([own]))
    const killed = await start(
      t,
      `
publisher = connect(outbox="outbox")
for number in range(3):
    publisher.submit({**event, "playlistItemId": f"item {number}", "services": []})
publisher.submit({**event, "start": "2026-01-01T00:00:00Z"})
publisher.submit(event)
while len(open("outbox").readlines()) < 6:
    time.sleep(0.01)
try:
    connect(outbox="outbox")
except hub.ClientError as error:
    say("second", error.code)
os.kill(os.getpid(), 9)
`,
      { ...settings, URL: 'mqtts://localhost:1' },
      home,
    )
    await killed.ended
    t.ok(killed.lines.includes('second outbox.locked'))
    t.equal(statSync(join(home, 'outbox')).mode & 0o777, 0o600)
    appendFileSync(join(home, 'outbox'), '{"number":9,"at":17')
    const next = await start(
      t,
      `
with connect(outbox="outbox") as publisher:
    for restored in publisher.restored:
        try:
            say(restored.result.result(20)["outcome"])
        except hub.EventRefused as refused:
            say(refused.outcome, restored.event["playlistItemId"])
        except hub.ClientError as error:
            say(error.code)
say(open("outbox").read().count("payload"))
`,
      settings,
      home,
    )
    t.equal(await next.ended, 0)
    t.same(next.lines.slice(0, 5), [
      'invalid item 0',
      'invalid item 1',
      'invalid item 2',
      'superseded',
      'published',
    ])
    const last = await start(
      t,
      'with connect(outbox="outbox") as publisher: say(publisher.restored)',
      settings,
      home,
    )
    t.equal(await last.ended, 0)
    t.same(last.lines, ['()'], 'what is settled is not sent again')
  })

  t.test(`paho ${version}: a filter that is denied is named, and the others stay`, async (t) => {
    const hub = await startTestHub(t)
    const reader = await hub.subscriber(`radio/${station().id}/#`)
    const login = await hub.publisher([own])
    const program = await start(
      t,
      `
reader = hub.connect_subscriber(url=env["URL"], username=env["SUB_USER"], password=env["SUB_PASSWORD"], ca=env["CA"],
    filters=[env["GRANTED"], "radio/other/#"], on_problem=lambda problem: say("reader", problem.code, problem),
    on={"state": lambda state: say(state), "changed": lambda livestream, shown: say(shown.playing.title)})
with connect() as publisher:
    while reader.state != "live":
        time.sleep(0.01)
    publisher.publish(event)
    shown = threading.Event()
    reader.on("playing", lambda message: shown.set())
    publisher.publish({**event, "title": "Zweite"})
    shown.wait(20)
say(reader.now_playing.get(env["GRANTED"].split("/")[1]).playing.title)
reader.close()
`,
      {
        ...settingsOf(hub, login),
        SUB_USER: reader.username,
        SUB_PASSWORD: reader.password,
        GRANTED: `radio/${station().id}/#`,
      },
    )
    t.equal(await program.ended, 0)
    t.same(program.lines, [
      'reader filter.denied radio/other/#: the credential does not permit this filter',
      'live',
      'Morgenlicht',
      'Zweite',
      'Zweite',
    ])
  })
}

for (const { python, version } of pythons.slice(-1)) {
  t.test(`whatever is refused, the same is sent as in JavaScript (paho ${version})`, async (t) => {
    const told = games.map(({ starts, isRefused }) => [starts, starts.map((_, index) => isRefused(index))])
    const program = await startPython(
      t,
      python,
      `
import json, os
import now_playing_hub as hub
event = json.loads(os.environ["EVENT"])
for starts, refused in json.loads(os.environ["GAMES"]):
    events = [{**event, "start": f"2026-01-31T12:0{start}:00Z"} for start in starts]
    items = [hub._Item(json.dumps(event).encode(), "inbox", "key") for event in events]
    ends = {"published": [], "refused": [], "superseded": []}
    order = hub._NewestFirst()
    order.hold(items)
    due = [item for item in items if not order.is_held(item)]
    while due:
        item = due.pop(0)
        if refused[items.index(item)]:
            ends["refused"].append(items.index(item))
        else:
            ends["published"].append(items.index(item))
            for old in order.published(item):
                ends["superseded"].append(items.index(old))
                due += order.left(old)
        due += order.left(item)
    print(json.dumps(ends))
`,
      { EVENT: JSON.stringify(playing(station())), GAMES: JSON.stringify(told) },
    )
    t.equal(await program.ended, 0)
    t.same(
      program.lines.map((line) => JSON.parse(line)),
      games.map(({ starts, isRefused }) => play(starts, isRefused)),
    )
  })

  t.test(
    `pauses are those of the JavaScript library, and the same problem is told once (paho ${version})`,
    async (t) => {
      const cases = [
        [1, 0, 1],
        [3, 3, 4],
        [30, 119, 5],
        [40, 160, 40],
        [2_000, 100_000, 60],
      ] as const
      const program = await startPython(
        t,
        python,
        `
import now_playing_hub as hub
for failures, outage, pause in ${JSON.stringify(cases)}:
    for nth in range(50):
        assert pause / 2 <= hub._publisher_pause(failures, outage) <= pause
now = 1_000.0
hub.time.monotonic = lambda: now
told = []
telling = hub._Telling(lambda problem: told.append(str(problem)))
for text, seconds in (("away", 0), ("away", 59), ("away", 1), ("another", 0)):
    now += seconds
    telling.tell(hub.ClientError("connection.lost", text))
print(told, telling.connected(), telling.connected())
`,
        {},
      )
      t.equal(await program.ended, 0, program.lines.join('\n'))
      t.same(program.lines, ["['away', 'away', 'another'] True False"])
    },
  )

  t.test(`one outbox serves JavaScript and Python in turn (paho ${version})`, async (t) => {
    const outbox = join(await temporaryDirectory(t), 'outbox')
    const clientIds = new Set<string>()
    let isDeaf = true
    const broker = await openScriptedBroker(t, ({ packet, clientId, proceed }) => {
      if (packet.cmd === 'connect') clientIds.add(clientId)
      if (packet.cmd !== 'publish' || !isDeaf) proceed()
    })
    const login = { username: 'u', password: 'p' }
    const { url, ca } = broker
    const openHere = () => connectPublisher({ url, ca, outbox, institution: own, ...login })
    const startPublisher = (text: string) =>
      startPython(t, python, publishing + text, {
        ...settingsOf({ mqttPort: 0, caPath: ca }, login, control(station(), { name: 'of Python' })),
        URL: url,
        OUTBOX: outbox,
      })

    const first = openHere()
    const left = first.publish(control(station(), { name: 'of JavaScript' })).catch(({ code }) => code)
    await broker.count(1)
    const refused = await startPublisher(`
try:
    connect(outbox=env["OUTBOX"])
except hub.ClientError as error:
    say(error.code, error)
`)
    await refused.ended
    t.same(refused.lines, [`outbox.locked ${outbox} is in use by process ${process.pid}`])
    await first.close(0)
    t.equal(await left, 'closed')

    const second = await startPublisher(`
publisher = connect(outbox=env["OUTBOX"])
publisher.submit(event)
time.sleep(60)
`)
    await broker.count(3)
    t.throws(openHere, { code: 'outbox.locked', message: /in use by process \d+$/ })
    second.kill()
    await second.ended
    isDeaf = false
    const third = openHere()
    t.teardown(() => third.close(0))
    t.match(third.restored, [{ event: { name: 'of JavaScript' } }, { event: { name: 'of Python' } }])
    const results = await Promise.all(third.restored.map(({ result }) => result))
    t.match(results, [{ outcome: 'published' }, { outcome: 'published' }])
    t.equal(clientIds.size, 1, 'all are one client')
  })
}

for (const { python, version } of pythons.slice(-1)) {
  t.test(`a full disk keeps back nothing that is in the outbox (paho ${version})`, async (t) => {
    const home = await temporaryDirectory(t)
    const program = await startPython(
      t,
      python,
      `
import os
import resource
import now_playing_hub as hub
first = hub._Outbox("outbox")
first.add(['{"event":"first","text":"' + "x" * 20_000 + '"}'])
first.close()
# The same as a full disk, for this process alone.
resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, resource.RLIM_INFINITY))
full = hub._Outbox("outbox")
try:
    full.add(['{"event":"second"}'])
except hub.ClientError as error:
    print(error.code)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
full.add(['{"event":"third"}'])
full.close()
last = hub._Outbox("outbox")
print([payload[:16] for _, payload, _ in last.restored])
last.close()
`,
      {},
      home,
    )
    t.equal(await program.ended, 0, program.lines.join('\n'))
    t.same(program.lines, ['outbox.unusable', `['{"event":"first"', '{"event":"third"']`])
  })

  t.test(
    `what others have put beside an outbox is neither followed nor written to (paho ${version})`,
    async (t) => {
      const program = await startPython(
        t,
        python,
        `
import os, stat
import now_playing_hub as hub
for beside in ("new", f"lock-{os.getpid()}"):
    for make in (lambda path: os.symlink("victim", path), os.mkfifo, lambda path: os.close(os.open(path, os.O_CREAT, 0o666))):
        with open("victim", "w") as file:
            file.write("of somebody else")
        make(f"outbox.{beside}")
        outbox = hub._Outbox("outbox")
        outbox.add(['{"event":"x"}'])
        outbox.close()
        with open("victim") as file:
            print(file.read(), oct(os.lstat("outbox").st_mode))
        os.remove("outbox")
os.mkfifo(f"outbox.lock-{os.getppid()}")
try:
    hub._Outbox("outbox")
except hub.ClientError as error:
    print(error.code)
`,
        {},
      )
      t.equal(await program.ended, 0, program.lines.join('\n'))
      t.same(program.lines, [...Array(6).fill('of somebody else 0o100600'), 'outbox.locked'])
    },
  )
}

for (const { python, version } of pythons) {
  const start = (t: Test, text: string, settings: Settings) =>
    startPython(t, python, publishing + text, settings)

  t.test(`a stranger reads a node with a public page, over WebSocket (paho ${version})`, async (t) => {
    const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
    const program = await start(
      t,
      `
with hub.connect_subscriber(url=env["PAGE"], ca=env["CA"], filters=["radio/+/track/playing"]) as reader:
    with connect() as publisher:
        publisher.publish(event)
    for message in reader:
        say(message.kind, message.event["title"], message.dropped)
        break
`,
      {
        ...settingsOf(hub, await hub.publisher([own])),
        PAGE: `https://localhost:${hub.httpsPort}`,
      },
    )
    t.equal(await program.ended, 0)
    t.same(program.lines, ['playing Morgenlicht 0'])
  })

  t.test(`events are published over HTTPS (paho ${version})`, async (t) => {
    const hub = await startTestHub(t)
    const api = await openApi(t, hub)
    const user = await addUser(hub, api, own)
    const program = await startPython(
      t,
      python,
      `
import json, os
import now_playing_hub as hub
env, event = os.environ, json.loads(os.environ["EVENT"])
with hub.create_https_publisher(url=env["URL"], email=env["EMAIL"], password=env["SECRET"], ca=env["CA"]) as publisher:
    print(publisher.publish(event)["outcome"], publisher.check(event)["dryRun"])
    try:
        publisher.publish({**event, "length": "long"})
    except hub.EventRefused as refused:
        print(refused.outcome, refused.errors[0]["path"])
try:
    hub.create_https_publisher(url=env["URL"], email=env["EMAIL"], password="wrong", ca=env["CA"]).publish(event)
except hub.ClientError as error:
    print(error.code)
`,
      {
        URL: `https://localhost:${hub.httpsPort}`,
        CA: hub.caPath,
        EVENT: JSON.stringify(playing(station())),
        EMAIL: user.email,
        SECRET: password,
      },
    )
    t.equal(await program.ended, 0)
    t.same(program.lines, ['published True', 'invalid .length', 'login.refused'])
  })
}
