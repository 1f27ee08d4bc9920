import { execFileSync } from 'node:child_process'
import t, { type Test } from 'tap'
import { errorCodes } from '../../../client/errors.ts'
import { pushRefusals } from '../../../client/verify-push.ts'
import { codeBlock, readPage } from '../../documentation.ts'
import { institutions, playing, station } from '../../events.ts'
import { projectFile } from '../../root.ts'
import { type Issued, startTestHub } from '../../start-hub.ts'
import { pythons, startPython } from './python-programs.ts'

const [own = '', foreign = ''] = institutions
const skip = pythons.length === 0 && 'NOT TESTED: no Python has paho (apt-get install python3-paho-mqtt)'

/** The beginning of each program: what it imports, and a publisher. */
const publishing = `
import json, os, threading, time
import now_playing_hub as hub
env = os.environ
event = json.loads(env["EVENT"])
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def connect(**options):
    return hub.connect_publisher(url=env["URL"], username=env["HUB_USER"], password=env["HUB_PASSWORD"], ca=env["CA"],
        institution=env["INSTITUTION"], on_problem=lambda problem: say("problem", problem.code), **options)
`

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

t.test('the page lists the codes of errors', async (t) => {
  const rows = [...readPage('clients/python.md').matchAll(/^\| `([a-z]+|[a-z]+\.[a-z]+)` \| (.+) \|$/gm)]
  t.same(
    rows.map(([, ...row]) => row),
    [
      ...Object.entries(pushRefusals).map(([code, { status, meaning }]) => [code, `${status} | ${meaning}`]),
      ...Object.entries(errorCodes),
    ],
  )
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
      ...{ HOST: 'localhost', PORT: String(hub.mqttPort), CA: hub.caPath, INSTITUTION: own },
      ...{ LIVESTREAM: station().id, PUB_USER: login.username, PUB_PASSWORD: login.password },
      ...{ SUB_USER: reader.username, SUB_PASSWORD: reader.password },
    }
    const listener = await startPython(t, python, block('connect_subscriber('), settings)
    const text = block('connect_publisher(')
    const publisher = await startPython(t, python, text, settings)
    t.equal(await publisher.ended, 0)
    t.same(publisher.lines, ['published de.org.hub.v1.radio.track.playing'])
    await listener.line(/^Mira Hollund - Nach dem Sturm$/)
    const wrong = await startPython(t, python, text.replace('"length": 233', '"length": "233"'), settings)
    t.equal(await wrong.ended, 1)
    t.match(wrong.lines, [/^invalid \.length /])
    const refused = await startPython(t, python, text, { ...settings, PUB_PASSWORD: 'wrong' })
    t.equal(await refused.ended, 1)
    t.ok(refused.lines.some((line) => line.startsWith('login.refused: ')))
    await hub.ask('credentials.revoke', { username: reader.username })
    t.equal(await listener.ended, 1)
  })
}

type Settings = Record<string, string>

function settingsOf(
  { mqttPort, caPath }: { mqttPort: number; caPath: string },
  { username, password }: Issued,
  event: Record<string, unknown> = playing(station()),
): Settings {
  return {
    URL: `mqtts://localhost:${mqttPort}`,
    CA: caPath,
    INSTITUTION: own,
    HUB_USER: username,
    HUB_PASSWORD: password,
    EVENT: JSON.stringify(event),
  }
}
