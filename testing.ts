import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { createPasswords } from './bridge-https/users/passwords.ts'
import { call } from './cli/connection.ts'
import { loadConfig } from './config/config.ts'
import { startHub } from './hub.ts'
import { parseFeed } from './validator/feed/feed.ts'

export interface TestHubOptions {
  /** The livestreams, as `items` of a livestream feed (docs/operators.md). Default: those of the sample feed. */
  feed?: readonly object[]
  /** Settings of the node, as `HUB_` variables. The variables of the process do not count. */
  settings?: Readonly<Record<string, string>>
}

/** Logs in over MQTT with `username`, and over HTTPS with `email`. The password is the same. */
export interface TestLogin {
  username: string
  email: string
  password: string
  /** The institution that the user of the HTTPS API belongs to. */
  institution: string
}

export interface TestHub {
  /** Where MQTT clients connect: `mqtts://localhost:<port>`. */
  url: string
  /** Where the HTTPS API begins: `https://localhost:<port>`. */
  httpsUrl: string
  /** The CA that clients must trust, PEM text. */
  ca: string
  mqttPort: number
  httpsPort: number
  /** Adds somebody who may publish for an institution. Default: the institution of the first livestream. */
  addPublisher(institution?: string): Promise<TestLogin>
  /** Adds somebody who may read what matches the filters. Default: `radio/#`. */
  addSubscriber(...filters: string[]): Promise<TestLogin>
  /** Ends the node and starts it again: same ports, same store. All connections are lost. */
  restart(): Promise<void>
  /** Ends the node and removes its directory. */
  close(): Promise<void>
}

/**
 * Starts a hub in this process, for tests of programs that use a hub: on free ports, in a temporary directory. `close`
 * leaves nothing of it behind. The hub logs nothing. Rejects if a setting or the feed is not valid.
 */
export async function createTestHub({ feed, settings = {} }: TestHubOptions = {}): Promise<TestHub> {
  const home = await mkdtemp(join(tmpdir(), 'hub-'))
  const removeHome = () => rm(home, { recursive: true, force: true, maxRetries: 3 })
  try {
    let node = await startNode(home, feed, settings)
    const { mqttPort, httpsPort } = node.hub
    const samePorts = { HUB_MQTT_PORT: `${mqttPort}`, HUB_HTTPS_PORT: `${httpsPort}` }
    let restarting: Promise<void> = Promise.resolve()
    let closing: Promise<void> | undefined
    const restart = () => {
      if (closing) return Promise.reject(new Error('the test hub is closed'))
      restarting = restarting.then(async () => {
        await node.hub.close()
        node = await startNode(home, feed, { ...settings, ...samePorts })
      })
      return restarting
    }
    const close = () => {
      // A restart that fails has told so, and has left no node.
      closing ??= restarting.then(() => node.hub.close().finally(removeHome), removeHome)
      return closing
    }
    return { ...describe(node), ...createLogins(() => node), restart, close }
  } catch (error) {
    await removeHome()
    throw error
  }
}

type RunningNode = Awaited<ReturnType<typeof startNode>>

async function startNode(home: string, feed: readonly object[] | undefined, settings: object) {
  const ofFeed = feed === undefined ? {} : { HUB_FEED: await writeFeed(join(home, 'feed.json'), feed) }
  const ofNode = { HUB_DATA_DIR: join(home, 'data'), HUB_MQTT_PORT: '0', HUB_HTTPS_PORT: '0' }
  const loaded = loadConfig({ ...ofNode, ...ofFeed, ...settings }, home)
  if ('problems' in loaded) throw new Error(loaded.problems.join('\n'))
  // Without a destination of its own, pino would open standard output and listen for the end of the process.
  const log = pino({ level: 'silent' }, { write() {} })
  const hub = await startHub(loaded.config, log, {
    certsDir: join(home, 'certs'),
    // Guessing the passwords of a test is nobody's aim: with the usual work, each log-in takes 0.2 s.
    passwords: createPasswords({ work: { logN: 8, r: 1, p: 1 } }),
  })
  const ca = hub.caPath === undefined ? '' : await readFile(hub.caPath, 'utf8')
  return { hub, ca }
}

/** Writes the feed, and returns its path. A node with a bad feed would start, and refuse every event. */
async function writeFeed(path: string, items: readonly object[]): Promise<string> {
  const text = JSON.stringify({ items })
  const read = parseFeed(text)
  if ('reason' in read) throw new Error(`feed: ${read.problem}`)
  await writeFile(path, text)
  return path
}

function describe({ hub: { mqttPort, httpsPort }, ca }: RunningNode) {
  const url = `mqtts://localhost:${mqttPort}`
  return { url, httpsUrl: `https://localhost:${httpsPort}`, ca, mqttPort, httpsPort }
}

function createLogins(current: () => RunningNode): Pick<TestHub, 'addPublisher' | 'addSubscriber'> {
  const ownInstitution = current().hub.livestream?.institution.id ?? 'urn:org:institution:test'
  return {
    async addPublisher(institution = ownInstitution) {
      return add({ role: 'publisher', institutions: [institution] }, institution, 'publish')
    },
    async addSubscriber(...filters) {
      const allowed = filters.length > 0 ? filters : ['radio/#']
      return add({ role: 'subscriber', filters: allowed }, ownInstitution, 'subscribe')
    },
  }

  async function add(credential: object, institution: string, permission: string): Promise<TestLogin> {
    const made = await ask('credentials.add', { ...credential, label: 'test' })
    const { username, password } = made
    const email = `${username}@test.example`.toLowerCase()
    const { resetToken } = await ask('users.add', { email, institution, permissions: [permission] })
    await choosePassword(current(), { token: resetToken, password })
    return { username: `${username}`, email, password: `${password}`, institution }
  }

  async function ask(command: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
    const answer = await call(current().hub.adminSocket, command, args, 'test')
    if ('error' in answer) throw new Error(answer.error.message)
    return Object(answer.result)
  }
}

/** Sets the first password of a user, as the user would: with the token of the link. */
function choosePassword({ hub, ca }: RunningNode, body: object): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const to = { host: 'localhost', port: hub.httpsPort, path: '/auth/reset', method: 'POST' }
    const sent = request({ ...to, ca, headers, agent: false }, (response) => {
      response.resume()
      const isDone = response.statusCode !== undefined && response.statusCode < 300
      response.on('end', () =>
        isDone ? resolve() : reject(new Error(`POST /auth/reset: ${response.statusCode}`)),
      )
    })
    sent.on('error', reject)
    sent.end(JSON.stringify(body))
  })
}
