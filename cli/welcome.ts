import { relative } from 'node:path'
import type { Livestream } from '../validator/feed/feed.ts'

/**
 * Commands to paste after a start by hand: for a listener, a broadcaster and an event. Ports, paths and livestreams are
 * those of this node.
 */
export function welcomeText(node: {
  /** Address where clients reach the node. Loopback addresses and "every address" are printed as `localhost`. */
  host?: string
  mqttPort: number
  httpsPort: number
  adminSocket: string
  defaultSocket: string
  caPath: string
  livestream: Livestream | undefined
  /** Token of the one-time link for the first operator. Absent: there already is an operator. */
  firstOperatorToken?: string | undefined
  /** The file with that link, where the text goes to no terminal. */
  linkFile?: string
  /** Whether the node runs from the installed package, not from a checkout. */
  isInstalled?: boolean
}): string {
  const { mqttPort, httpsPort, livestream } = node
  const socket = node.adminSocket === node.defaultSocket ? '' : ` --socket ${quoted(node.adminSocket)}`
  // Only the installed package has a command `hubctl`.
  const { isInstalled = !import.meta.url.endsWith('.ts') } = node
  const hubctl = `${isInstalled ? 'hubctl' : 'npm run -s hubctl --'}${socket}`
  const host = hostOf(node)
  const caPath = quoted(relative(process.cwd(), node.caPath))
  const broker = `-h ${host} -p ${mqttPort} --cafile ${caPath}`
  const baseUrl = baseUrlOf(node)
  return [
    '',
    `The hub listens for MQTT over TLS on port ${mqttPort}, and for HTTPS on port ${httpsPort}. Your first event, in two more`,
    'terminals, in this folder (mosquitto_sub and mosquitto_pub are the mosquitto clients):',
    '',
    '# Terminal 2: a listener that sees everything',
    `SUB=$(${hubctl} credentials add --role subscriber --label player --allow 'radio/#' --json)`,
    ...login('SUB'),
    `mosquitto_sub ${broker} -u "$SUB_USER" -P "$SUB_PASSWORD" -q 1 -v -t 'radio/#'`,
    ...(livestream ? publisherLines(livestream, hubctl, broker) : []),
    ...(livestream ? httpsLines(livestream, hubctl, baseUrl, caPath) : []),
    '',
    `# What is on air, in a browser that accepts the development certificate: ${baseUrl}/`,
    ...consoleLines(node),
    '',
    '# What the node did, and what else it can be asked',
    `${hubctl} status`,
    `${hubctl} --help`,
    '',
    '',
  ].join('\n')
}

/** Returns shell comments, because these lines are for a browser, not for a terminal. */
function consoleLines(node: Parameters<typeof welcomeText>[0]): string[] {
  const { firstOperatorToken: token, linkFile } = node
  if (token === undefined && linkFile === undefined) {
    return [`# The console of operators: ${baseUrlOf(node)}/console`]
  }
  if (token === undefined) {
    return [
      '# The console of operators. The link that makes the first one works once, within an hour, and ends with the node:',
      `cat ${quoted(String(linkFile))}`,
    ]
  }
  return [
    '# The console of operators. This link makes the first one; it works once, within an hour, and ends with the node:',
    `# ${firstOperatorLink(node, token)}`,
  ]
}

/** The one-time link with which a new node gets its first operator. */
export function firstOperatorLink(node: { host?: string; httpsPort: number }, token: string): string {
  return `${baseUrlOf(node)}/console/first#token=${token}`
}

function baseUrlOf(node: { host?: string; httpsPort: number }): string {
  const host = hostOf(node)
  return `https://${host.includes(':') ? `[${host}]` : host}:${node.httpsPort}`
}

function hostOf({ host }: { host?: string }): string {
  return host === undefined || everyAddress.has(host) ? 'localhost' : host
}

const everyAddress = new Set(['127.0.0.1', '0.0.0.0', '::', '::1'])

function publisherLines(livestream: Livestream, hubctl: string, broker: string): string[] {
  const { type, externalId, id, publisher, institution, title } = livestream
  const services = [{ type, externalId, id, publisherId: publisher.id, institutionId: institution.id }]
  const user = '-u "$PUB_USER" -P "$PUB_PASSWORD"'
  return [
    '',
    `# Terminal 3: a broadcaster of ${printable(institution.title)}, and what the hub says about its events`,
    `PUB=$(${hubctl} credentials add --role publisher --label studio --institution ${institution.id} --json)`,
    ...login('PUB'),
    // Feedback is not retained, so the listener comes first.
    `mosquitto_sub ${broker} ${user} -q 1 -v -t 'feedback/${institution.id}' & sleep 1`,
    '',
    `# Terminal 3: now playing on ${printable(title)}`,
    `mosquitto_pub ${broker} ${user} -q 1 -t 'inbox/${institution.id}' -m ${eventArgument(services)}`,
  ]
}

function httpsLines(livestream: Livestream, hubctl: string, baseUrl: string, caPath: string): string[] {
  const { type, externalId, institution, publisher } = livestream
  const services = [{ type, externalId, publisherId: publisher.externalId }]
  const password = '\\"password\\":\\"correct horse battery\\"'
  const bearer = '-H "authorization: Bearer $TOKEN"'
  return [
    '',
    '# Or over HTTPS, as broadcasters did before MQTT (docs/https.md, docs/migration.md): a user, and its token',
    `api() { curl -sS --fail-with-body -w '\\n' --cacert ${caPath} -H 'content-type: application/json' "$@"; }`,
    `ADDED=$(${hubctl} users add --email "studio-$(date +%s)@radio.example" --institution ${institution.id} --json)`,
    `api ${baseUrl}/auth/reset -d "{\\"token\\":\\"$(node -p "($ADDED).resetToken")\\",${password}}"`,
    `LOGIN=$(api ${baseUrl}/auth/login -d "{\\"email\\":\\"$(node -p "($ADDED).email")\\",${password}}")`,
    'TOKEN=$(node -p "($LOGIN).token")',
    '',
    '# An event (send it again if the answer says TOPIC_CREATED: nothing came before it), and the topics',
    `api ${baseUrl}/events/${eventName} ${bearer} -d ${eventArgument(services)}`,
    `api ${baseUrl}/topics ${bearer}`,
  ]
}

function login(variable: string): string[] {
  return [
    `${variable}_USER=$(node -p "($${variable}).username")`,
    `${variable}_PASSWORD=$(node -p "($${variable}).password")`,
  ]
}

const eventName = 'de.org.hub.v1.radio.track.playing'

/** An event as one word of a shell command. The shell fills in `start` when the command runs. */
function eventArgument(services: readonly object[]): string {
  const event = {
    event: eventName,
    type: 'music',
    start: 'START',
    length: 214,
    title: 'Ebbe und Flut',
    artist: 'Mira Hollund',
    playlistItemId: 'item-1',
    services,
  }
  return `'${escaped(JSON.stringify(event)).replace('START', `'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'`)}'`
}

/** Quotes a path for the shell, if it has characters that need it. */
function quoted(path: string): string {
  return /^[\w./@:+-]+$/.test(path) ? path : `'${escaped(path)}'`
}

/** Escapes text for use between single quotes in the shell. */
function escaped(text: string): string {
  return text.replaceAll("'", `'\\''`)
}

/** Replaces line breaks and control characters: the shell would run the second line of a title. */
function printable(title: string): string {
  return title.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
}
