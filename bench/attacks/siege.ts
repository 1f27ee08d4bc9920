import { writeFile } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../test/free-port.ts'
import type { Livestream } from '../../validator/feed/feed.ts'
import { startChild } from '../child.ts'
import { keepApart } from '../cores.ts'
import type { Login } from '../load/packets.ts'
import type { Journeys, Phase, commands as pairCommands } from '../load/pair.ts'
import { type Bound, boundMemory, watchMemory } from '../memory.ts'
import { type BenchNode, startNode } from '../node.ts'
import { watchOpenFiles } from '../open-files.ts'
import { onGround } from '../peers/ground.ts'
import { onSlowFolder } from '../slow-disk.ts'
import { logIn, subscribeWebhook } from '../user.ts'
import type { Force, Seen, Target } from './attack.ts'
import type { commands as attackerCommands } from './attacker.ts'
import { type AttackName, attacks, type Plan } from './attacks.ts'
import type { NodeSettings } from './bad-receivers.ts'

/** How long the phases last, seconds. */
export interface Phases {
  alone: number
  attack: number
  after: number
}

/** The effects of an attack on the node and on the pair (`load/pair.ts`). */
export interface Outcome {
  seen: Seen
  /** `events`: journeys to the subscriber. `pushes`: journeys to the receiver, if the plan measures pushes. */
  events: Record<Phase, Journeys>
  pushes?: Record<Phase, Journeys>
  /** Files and sockets that the node had open in addition, at most. */
  files: number
  /** Resident memory of the node, bytes. `kept`: growth without garbage. */
  memory: { growth: number; kept: number; highest: number }
  /** The node still runs, and its memory stayed within the bound if there is one. */
  survived: boolean
  lost: number
  /** Growth of the node's counters, by name and labels. */
  counters: Record<string, number>
  /** Longest pause of the pair's event loop during the attack, milliseconds. */
  ownDelay: number
  /** How the memory of the node was bounded. */
  bound: Bound['by'] | undefined
}

/** Address of the pair's receiver. The receivers of the attacker are at another address. */
const pairHost = '127.0.0.2'
const warmSeconds = 2
/** So long a slow folder holds up the node, milliseconds: longer than the attack. */
const slowFileMs = 60_000

/**
 * Attacks a fresh node with default settings, while the pair uses the node. `apart` (default: true): the node gets one
 * half of the cores, pair and attacker share the other half. `memory`: bound for the node, MiB.
 */
export async function besiege(
  name: AttackName,
  of: Phases & { force?: Partial<Force>; env?: Record<string, string>; memory?: number; apart?: boolean },
): Promise<Outcome> {
  const plan: Plan = attacks[name]
  return onGround([plan.livestreams, [pairHost]], async (ground, stops) => {
    const pair = await startChild<typeof pairCommands>('load/pair.ts')
    stops.push(pair.stop)
    const attacker = await startChild<typeof attackerCommands>('attacks/attacker.ts')
    stops.push(attacker.stop)
    const { cert, key, ca } = ground.certificate
    const [attacking, healthy] = ground.institutions
    const [livestream] = healthy?.livestreams ?? []
    if (!attacking || !livestream) throw new Error('the feed has no two institutions')
    const url = plan.pushes && (await pair.ask('receive', { cert, key, host: pairHost }))
    const ports = await freePorts(plan.ports ?? 0)
    const settings = plan.settings?.({
      ports,
      livestreams: attacking.livestreams,
      directory: ground.directory,
    })
    const bound = of.memory ? await boundMemory(of.memory) : undefined
    const env = {
      HUB_TLS_CERT: cert,
      HUB_TLS_KEY: key,
      HUB_TLS_CA: ca,
      HUB_FEED: ground.feedPath,
      ...(plan.pushes && { HUB_PUSH_ALLOW_PRIVATE: 'true', HUB_PUSH_CA: ca }),
      ...(settings && {
        HUB_CONFIG: await writeSettings(
          ground.directory,
          withPair(settings, { kind: plan.pushes, url: url ?? '', livestream }),
        ),
      }),
      // `startNode` switches this limit off. An attacked node gets the default again.
      HUB_PUBLISH_RATE: '100',
      ...plan.env,
      ...of.env,
    }
    const slow = plan.slowFiles ? onSlowFolder(plan.slowFiles(ground.directory), slowFileMs) : []
    const node = await startNode({ ...bound?.env, ...env }, { command: [...(bound?.command ?? []), ...slow] })
    stops.push(node.stop)
    if (of.apart ?? true) await keepApart([node.pid], [pair.pid, attacker.pid])
    preferPair(pair.pid, attacker.pid)

    const subscriber = () => addCredential(node, { role: 'subscriber', filters: ['radio/#'] })
    const publisher = (institution: string) =>
      addCredential(node, { role: 'publisher', institutions: [institution] })
    const target: Target = {
      mqttPort: node.mqttPort,
      httpsPort: node.httpsPort,
      ca: ground.ca,
      server: { cert, key },
      livestreams: attacking.livestreams,
      ports,
      feedPath: ground.feedPath,
      publisher: await publisher(attacking.id),
      subscriber: await subscriber(),
      token: await logIn(node, attacking.id, ['publish', 'subscribe']),
    }
    await pair.ask('start', {
      address: { port: node.mqttPort, ca: ground.ca },
      publisher: await publisher(livestream.institution.id),
      subscriber: await subscriber(),
      livestream,
    })
    await delay(warmSeconds * 1000)
    const watchFiles = watchOpenFiles(node.pid)
    stops.push(watchFiles.end)
    await attacker.ask('prepare', { name, target })
    if (plan.pushes === 'webhook' && url !== undefined) {
      // Only now: the load of `prepare` would give the webhook a backlog.
      const token = await logIn(node, livestream.institution.id, ['subscribe'])
      await subscribeWebhook({ ...node, ca: ground.ca }, token, { url, topic: livestream.id })
    }
    const { bytes: bytesAtFirst } = await node.usage({ collected: true })
    const countersAtFirst = await countersOf(node)
    await pair.ask('begin', { name: 'alone' })
    await delay(of.alone * 1000)
    await pair.ask('begin', { name: 'beside' })
    const watch = watchMemory(node.pid)
    const force: Force = { ...plan.force, ...of.force, seconds: of.attack }
    const seen = await attacker.ask('attack', force)
    await pair.ask('begin', { name: 'after' })
    await delay(of.after * 1000)
    const { events, pushes, ownDelay } = await pair.ask('finish', { pushed: plan.pushes !== undefined })
    const survived = node.ended() === undefined
    const { bytes: bytesAtLast } = survived ? await node.usage({ collected: true }) : { bytes: NaN }
    const memory = await watch.end()
    const files = await watchFiles.end()
    const phases = Object.values(events)
    return {
      seen,
      events,
      ...(pushes && { pushes }),
      files,
      memory: { ...memory, kept: bytesAtLast - bytesAtFirst },
      survived: survived && !(of.memory && memory.highest > of.memory * 1024 * 1024),
      lost: phases.reduce((sum, { sent, received }) => sum + sent - received, 0),
      counters: survived ? difference(await countersOf(node), countersAtFirst) : {},
      ownDelay,
      bound: bound?.by,
    }
  })
}

async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) {
    const port = await freePort()
    if (!ports.includes(port)) ports.push(port)
  }
  return ports
}

/** The settings, and the receiver of the pair as a plugin target or an output. */
function withPair(
  { plugins = [], outputs = [] }: NodeSettings,
  { kind, url, livestream }: { kind: Plan['pushes']; url: string; livestream: Livestream },
): object {
  const target = { type: 'pair', autoEnable: true, url }
  const output = {
    name: 'pair',
    driver: 'url-template',
    url: `${url}output`,
    method: 'POST',
    body: '{"playlistItemId":"{title}"}',
    livestreams: { [livestream.id]: 'pair' },
  }
  return {
    plugins: [...plugins, ...(kind === 'target' ? [target] : [])],
    outputs: [...outputs, ...(kind === 'output' ? [output] : [])],
  }
}

async function writeSettings(directory: string, settings: object): Promise<string> {
  const path = join(directory, 'hub.json')
  await writeFile(path, JSON.stringify(settings))
  return path
}

function addCredential(node: BenchNode, request: object): Promise<Login> {
  return node.ask<Login>('credentials.add', { label: 'siege', ...request })
}

/** Gives the pair priority over the attacker, because both share the remaining cores. */
function preferPair(pair: number, attacker: number): void {
  try {
    setPriority(pair, -10)
  } catch {
    setPriority(attacker, 5)
  }
}

async function countersOf(node: BenchNode): Promise<Record<string, number>> {
  return (await node.ask<{ counters: Record<string, number> }>('status')).counters
}

function difference(after: Record<string, number>, before: Record<string, number>): Record<string, number> {
  const grown = Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)] as const)
  return Object.fromEntries(grown.filter(([, by]) => by !== 0))
}
