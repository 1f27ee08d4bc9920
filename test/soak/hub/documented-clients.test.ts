import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { connect as connectPlainly } from 'node:net'
import { dirname, join } from 'node:path'
import { connect as connectSecurely, createServer, type TLSSocket } from 'node:tls'
import { generate, parser } from 'mqtt-packet'
import t, { type Test } from 'tap'
import { openScriptedBroker } from '../../client/scripted-broker.ts'
import { type Broker, connect, connectPublisher } from '../../clients.ts'
import { codeBlock, readPage, startProgram } from '../../documentation.ts'
import { institutions, playing, playingTopic, station } from '../../events.ts'
import { projectFile } from '../../root.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode, type Issued, startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { pythons } from '../client/python-programs.ts'

/*
 * Runs the clients without the library, of docs/subscribers.md and docs/clients/, as they stand there, behind a door that
 * answers for the hub with CONNACK 3 or with a message that nobody can read, or keeps back what the hub answers.
 */

const [own = '', foreign = ''] = institutions
const goPath = '/usr/share/gocode'
const hasGo = existsSync(`${goPath}/src/github.com/eclipse/paho.mqtt.golang`) && works('go', 'version')
const jars = '/usr/share/java'
const hasJava = existsSync(`${jars}/mqtt-client.jar`) && works('javac', '-version')

/** A program of a page. */
interface Program {
  page: string
  language: string
  /** The block that contains this has it. */
  having: string
  /** The file to save it in. */
  file: string
  /** Compiles it in this folder. */
  build?(folder: string): void
  /** What starts it in this folder. */
  command(folder: string): string[]
  /** Changes its text. */
  change?(text: string): string
}

const inJavaScriptAndPython = (javascriptPage: string, pythonPage: string): Program[] => [
  {
    page: javascriptPage,
    language: 'js',
    having: 'mqtt.connect({',
    file: 'program.mjs',
    command: () => [process.execPath, 'program.mjs'],
  },
  ...pythons.map(({ python }) => ({
    page: pythonPage,
    language: 'python',
    having: 'mqtt.Client(',
    file: 'program.py',
    command: () => [python, 'program.py'],
  })),
]
const inGo: Program = {
  page: 'clients/go.md',
  language: 'go',
  having: 'package main',
  file: 'publish.go',
  build(cwd) {
    const env = { ...process.env, GO111MODULE: 'off', GOPATH: goPath }
    execFileSync('go', ['build', '-o', 'publish', 'publish.go'], { cwd, env })
  },
  command: (cwd) => [join(cwd, 'publish')],
}
const inJava: Program = {
  page: 'clients/java.md',
  language: 'java',
  having: 'class Publish',
  file: 'Publish.java',
  build(cwd) {
    execFileSync('javac', ['-cp', `${jars}/*`, 'Publish.java'], { cwd })
  },
  command: (cwd) => ['java', '-cp', `${jars}/*:${cwd}`, 'Publish'],
}
const inShell = { page: 'clients/shell.md', language: 'bash' }
const shellPublisher: Program = {
  ...inShell,
  having: 'publish.sh FILE',
  file: 'publish.sh',
  command(cwd) {
    writeFileSync(join(cwd, 'event.json'), JSON.stringify(playing(station(), { length: 214 })))
    return ['bash', 'publish.sh', 'event.json']
  },
}
const mistakenInShell: Program = {
  ...shellPublisher,
  command(cwd) {
    writeFileSync(join(cwd, 'event.json'), JSON.stringify(playing(station(), { length: 0 })))
    return ['bash', 'publish.sh', 'event.json']
  },
}
const shellListener: Program = {
  ...inShell,
  having: 'listen.sh FILTER',
  file: 'listen.sh',
  command: () => ['bash', 'listen.sh', `radio/${station().id}/#`],
}
const publishing = [
  ...inJavaScriptAndPython('clients/javascript.md', 'clients/python.md'),
  ...(hasGo ? [inGo] : []),
  ...(hasJava ? [inJava] : []),
]
const listening = [...inJavaScriptAndPython('subscribers.md', 'subscribers.md'), shellListener]
const skip =
  pythons.length === 0 && 'NOT TESTED: there is no Python with paho (apt-get install python3-paho-mqtt)'

t.test(
  'listeners come back, outlast a bad message, and end when their credential does',
  { skip },
  async (t) => {
    const home = await temporaryDirectory(t)
    let hub = await startTestHub(t, {}, home)
    const door = await openDoor(t, hub)
    const login = await hub.subscriber(`radio/${station().id}/#`)
    const listeners = await Promise.all(listening.map((program) => start(t, program, door, login)))
    await door.refusals(listeners.length * 2)
    door.open()
    let publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
    const all = (pattern: RegExp) => Promise.all(listeners.map(({ line }) => line(pattern)))
    await publisher.publish(playing(station(), { title: 'After a refusal' }))
    await all(/After a refusal/)
    for (const payload of [
      'no JSON',
      '{"event":"de.org.hub.v1.radio.track.playing","start":"x","title":"\\ud83c"}',
      '7',
    ]) {
      door.send(
        generate({
          cmd: 'publish',
          topic: playingTopic(station()),
          payload,
          qos: 0,
          dup: false,
          retain: false,
        }),
      )
    }
    await publisher.publish(playing(station(), { title: 'After bad messages' }))
    await all(/After bad messages/)
    await hub.close()
    hub = await startTestHub(t, {}, home)
    door.leadTo(hub)
    publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
    await publisher.publish(playing(station(), { title: 'After a restart' }))
    await all(/After a restart/)
    await hub.ask('credentials.revoke', { username: login.username })
    t.same(
      await Promise.all(listeners.map(({ ended }) => ended)),
      listeners.map(() => 1),
    )
  },
)

t.test('publishers come back after a refusal, and end with the report', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const door = await openDoor(t, hub)
  const login = await hub.publisher([own])
  const publishers = await Promise.all(publishing.map((program) => start(t, program, door, login)))
  await door.refusals(publishers.length * 2)
  door.open()
  await Promise.all(publishers.map(({ line }) => line(/^published de\.org\.hub\.v1\.radio\.track\.playing/)))
  t.same(
    await Promise.all(publishers.map(({ ended }) => ended)),
    publishers.map(() => 0),
  )
})

t.test('the publisher in a shell comes back after a refusal, and ends at a wrong password', async (t) => {
  const hub = await startTestHub(t)
  const door = await openDoor(t, hub)
  const login = await hub.publisher([own])
  const publisher = await start(t, shellPublisher, door, login)
  await door.refusals(2)
  door.open()
  t.equal(await publisher.ended, 0)
  t.ok(publisher.lines.includes('published event.json'))
  const refused = await start(t, shellPublisher, door, { ...login, password: 'wrong' })
  t.equal(await refused.ended, 1)
})

t.test('publishers survive a node that dies before it has acknowledged', { skip }, async (t) => {
  const home = await temporaryDirectory(t)
  const first = await spawnHub(t, home)
  const door = await openDoor(t, first)
  const account = { role: 'publisher', label: 'test', institutions: [own] }
  const login = await askNode<Issued>(first.adminSocket, 'credentials.add', account)
  // Of the events of two, one reaches the node, and its acknowledgement does not come back. The other does not reach it.
  const programs = [...publishing, ...publishing, shellPublisher, shellPublisher]
  // The first node may report an event whose program gets this report later and then ends. So the observer's session
  // lasts from before the first publish.
  const observing = { clientId: 'observer', clean: false }
  const early = await connect(t, first, login, observing)
  await early.client.subscribeAsync(`feedback/${own}`, { qos: 1 })
  door.open()
  door.keepBack()
  const publishers = await Promise.all(programs.map((program) => start(t, program, door, login)))
  await door.inFlight(programs.length)
  await first.stop('SIGKILL')
  t.same(
    publishers.flatMap(({ lines }) => lines.filter((line) => line.startsWith('published'))),
    [],
  )

  const second = await spawnHub(t, home)
  const observer = await connect(t, second, login, observing)
  door.leadTo(second)
  await Promise.all(publishers.map(({ line }) => line(/^published /)))
  t.same(
    await Promise.all(publishers.map(({ ended }) => ended)),
    publishers.map(() => 0),
  )
  const published = new Set<unknown>()
  for (const { json } of early.received.all) if (json.outcome === 'published') published.add(json.payloadHash)
  if (published.size === programs.length) return
  await observer.received.until(({ json }) => {
    if (json.outcome === 'published') published.add(json.payloadHash)
    return published.size === programs.length
  })
})

for (const [what, loginOf] of [
  ['a filter that is denied', (hub: TestHub) => hub.publisher([foreign])],
  ['a wrong password', async (hub: TestHub) => ({ ...(await hub.publisher([own])), password: 'wrong' })],
] as const) {
  t.test(`publishers end with an error at ${what}`, { skip }, async (t) => {
    const hub = await startTestHub(t)
    const door = await openDoor(t, hub)
    door.open()
    const login = await loginOf(hub)
    const publishers = await Promise.all(publishing.map((program) => start(t, program, door, login)))
    t.same(
      await Promise.all(publishers.map(({ ended }) => ended)),
      publishers.map(() => 1),
    )
  })
}

t.test('publishers end with an error at a refused event, and name the field', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const door = await openDoor(t, hub)
  door.open()
  const login = await hub.publisher([own])
  const mistaken = [...publishing.map(withoutLength), mistakenInShell]
  for (const program of mistaken) {
    const { ended, complaints } = await start(t, program, door, login)
    t.equal(await ended, 1, program.file)
    t.match(complaints.join('\n'), /refused.*invalid.*\.length/s, program.file)
  }
})

t.test('publishers end with an error where the hub acknowledges, and never reports', { skip }, async (t) => {
  const silent = await openScriptedBroker(t, ({ packet, send, proceed }) => {
    if (packet.cmd !== 'publish') proceed()
    else if (packet.qos > 0) send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
  })
  const door = { port: Number(new URL(silent.url).port), ca: silent.ca }
  const login = { username: 'pub-test', password: 'secret' }
  for (const program of inJavaScriptAndPython('clients/javascript.md', 'clients/python.md')) {
    const soon = (text: string) => text.replace('120_000', '1_000').replace('Timer(120,', 'Timer(1,')
    const { ended, complaints } = await start(t, { ...program, change: soon }, door, login)
    t.equal(await ended, 1, program.file)
    t.match(complaints.join('\n'), /no report in two minutes/, program.file)
  }
})

t.test('listeners end with an error at a filter that is denied', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const door = await openDoor(t, hub)
  door.open()
  const login = await hub.subscriber(`radio/${station(1, 0).id}/#`)
  const listeners = await Promise.all(listening.map((program) => start(t, program, door, login)))
  t.same(
    await Promise.all(listeners.map(({ ended }) => ended)),
    listeners.map(() => 1),
  )
})

/** The program with a mistake in its event. */
const withoutLength = (program: Program): Program => ({
  ...program,
  change: (text) => text.replace(/(length"?: ?)\d+/, '$10'),
})

/** How many programs of a language were started at a door. */
const starts = new Map<string, number>()
/** The folders of the programs that were made, by their text: to compile one takes seconds of processor time. */
const made = new Map<string, Promise<string>>()

/** The folder of a program of a page. The programs that run at one door side by side have client ids of their own. */
function folderOf({ page, language, having, file, build, change = (text) => text }: Program, door: number) {
  const count = starts.get(`${language} ${door}`) ?? 0
  starts.set(`${language} ${door}`, count + 1)
  const text = change(codeBlock(readPage(page), language, having))
  const withId = text.replace(/studio-\d/, `studio-${language}-${count}`)
  const folder = made.get(withId) ?? make()
  made.set(withId, folder)
  return folder

  async function make(): Promise<string> {
    const folder = await temporaryDirectory(t)
    await symlink(projectFile('node_modules'), join(folder, 'node_modules'))
    await writeFile(join(folder, file), withId)
    build?.(folder)
    return folder
  }
}

/** Starts a program of a page, and tells when it ends, with its exit code. */
async function start(t: Test, program: Program, door: Pick<Door, 'port' | 'ca'>, login: Issued) {
  const cwd = await folderOf(program, door.port)
  const env = {
    PATH: process.env.PATH ?? '',
    LANG: 'C.UTF-8',
    HOST: 'localhost',
    PORT: String(door.port),
    CA: door.ca,
    INSTITUTION: own,
    LIVESTREAM: station().id,
    PUB_USER: login.username,
    PUB_PASSWORD: login.password,
    SUB_USER: login.username,
    SUB_PASSWORD: login.password,
  }
  return startProgram(t, program.command(cwd), { cwd, env })
}

type Door = Awaited<ReturnType<typeof openDoor>>

/**
 * A TLS port with the certificate of a node. Refuses connections with CONNACK 3 first, then leads to the node, and may keep
 * back publishes and what the node answers them.
 */
async function openDoor(t: Test, { mqttPort, caPath }: Broker) {
  const certificate = (name: string) => readFileSync(join(dirname(caPath), name))
  const inside = new Set<TLSSocket>()
  let nodePort = mqttPort
  let isRefusing = true
  let refused = 0
  let isKeepingBack = false
  let publishes = 0
  let held = 0
  const waiting = new Set<() => void>()
  const noticed = () => {
    for (const look of waiting) look()
  }
  const until = (holds: () => boolean) =>
    new Promise<void>((resolve) => {
      waiting.add(() => holds() && resolve())
      noticed()
    })
  const server = createServer(
    { key: certificate('server-key.pem'), cert: certificate('server.pem') },
    (client) => {
      client.on('error', () => {})
      client.once('data', (first) => {
        if (isRefusing) {
          client.end(generate({ cmd: 'connack', returnCode: 3, sessionPresent: false }))
          refused++
          noticed()
          return
        }
        passOn(client, first)
      })
    },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const client of inside) client.destroy()
    server.close()
  })
  const address = server.address()

  function passOn(client: TLSSocket, first: Buffer): void {
    const socket = connectPlainly(nodePort, '127.0.0.1')
    const node = connectSecurely({
      socket,
      host: 'localhost',
      servername: 'localhost',
      ca: certificate('ca.pem'),
    })
    node.on('error', () => client.destroy())
    socket.on('error', () => client.destroy())
    node.on('close', () => client.destroy())
    client.on('close', () => {
      inside.delete(client)
      node.destroy()
    })
    inside.add(client)
    const packets = parser({ protocolVersion: 4 })
    let hasPublished = false
    let reaches = true
    packets.on('packet', ({ cmd }) => {
      if (cmd !== 'publish' || !isKeepingBack) return
      hasPublished = true
      reaches = publishes++ % 2 === 0
      if (!reaches) hold()
    })
    packets.on('error', () => {})
    const hold = () => {
      held++
      noticed()
    }
    const pass = (bytes: Buffer) => {
      packets.parse(bytes)
      if (reaches) node.write(bytes)
    }
    pass(first)
    client.on('data', pass)
    let isHeld = false
    node.on('data', (bytes) => {
      if (!hasPublished) client.write(bytes)
      else if (reaches && !isHeld) {
        isHeld = true
        hold()
      }
    })
  }

  return {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    ca: caPath,
    /** Resolves when so many connections were refused. */
    refusals: (count: number) => until(() => refused >= count),
    /** Leads to the node from now on. */
    open(): void {
      isRefusing = false
    },
    /** From now on no PUBLISH has an answer. Every second one does not even reach the node. */
    keepBack(): void {
      isKeepingBack = true
    },
    /** Resolves when so many connections have a PUBLISH that was kept from the node, or whose answer was kept back. */
    inFlight: (count: number) => until(() => held >= count),
    /** Sends bytes to every client that is in. */
    send(bytes: Buffer): void {
      for (const client of inside) client.write(bytes)
    },
    /** Leads to another node, and keeps nothing back any more. */
    leadTo(next: Broker): void {
      nodePort = next.mqttPort
      isKeepingBack = false
    },
  }
}

function works(program: string, ...args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
