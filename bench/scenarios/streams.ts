import { startChild } from '../child.ts'
import { keepApart } from '../cores.ts'
import { countCpu } from '../cost.ts'
import { deliver, enterCrowd, joinPublishers, warmUp, warmUpEvents } from '../delivery.ts'
import type { commands as readerCommands } from '../load/readers.ts'
import { onGround } from '../peers/ground.ts'
import { startHubPeer } from '../peers/hub.ts'
import { counted, list, type Options, type Sample, type Scenario, single } from '../scenario.ts'
import { type Act, actOf, alternately } from '../stage.ts'
import { logIn } from '../user.ts'

const institution = 'urn:org:institution:75b657fb49856f7b'
const ways = ['streams', 'MQTT, QoS 0'] as const

/** The first connections do not count, as in `idle`. */
const firstIdle = 200

export const streams: Scenario = {
  about:
    'Reading over plain HTTPS beside MQTT, on the same hub: CPU for each event and reader of `/stream` beside that for a ' +
    'subscriber of `radio/#` at QoS 0, in turn; memory of an idle stream beside that of an idle MQTT connection; and CPU for ' +
    'each question of `now`. `attacks --only slow-streams` has what streams do to others that nobody reads.',
  options: {
    seconds: [2],
    runs: [6],
    readers: [1000, 3000],
    rate: [10],
    idle: [3000],
    asks: [20_000],
    warm: [warmUpEvents],
  },
  figures: {
    cpu: 'CPU per delivery, µs',
    p50: 'p50, ms',
    p99: 'p99, ms',
    lost: 'lost',
    kilobytes: 'memory per idle connection, kB',
    asked: 'CPU per question, µs',
    rate: 'questions per second',
  },
  tables: [['cpu', 'p50', 'p99', 'lost'], ['kilobytes'], ['asked', 'rate']],
  subject: 'streams',
  compared: ['cpu', 'p50', 'p99', 'kilobytes'],
  parts: {
    delivery: 'Each event goes to all readers.',
    idle: 'Nothing happens.',
    now: 'Questions of `now`, over 8 kept connections.',
  },

  async measure(options, _asked, say, only) {
    const samples: Sample[] = []
    const isAsked = (part: string) => only.length === 0 || only.includes(part)
    for (const [part, measure] of Object.entries({ delivery, idle, now })) {
      if (isAsked(part)) samples.push(...(await measure(options, say)))
    }
    return samples
  },
}

type Hub = Awaited<ReturnType<typeof startHubPeer>>
type Readers = Awaited<ReturnType<typeof startChild<typeof readerCommands>>>

/** A hub with its load generators. */
interface Stand {
  hub: Hub
  act: Act
  readers: Readers
  /** What readers need. */
  door: { address: { port: number; ca: string }; token: string }
}

function onStand<Result>(work: (stand: Stand) => Promise<Result>): Promise<Result> {
  return onGround([], async (ground, stops) => {
    const hub = await startHubPeer(ground)
    stops.push(hub.stop)
    const act = await actOf(hub, stops)
    const readers = await startChild<typeof readerCommands>('load/readers.ts')
    stops.push(readers.stop)
    await keepApart(hub.pids, [act.crowd.pid, act.publishers.pid, readers.pid])
    const token = await logIn({ ...hub, ca: ground.ca }, institution, ['subscribe'])
    await joinPublishers(act, 1)
    return work({ hub, act, readers, door: { address: { port: hub.httpsPort, ca: ground.ca }, token } })
  })
}

function delivery(options: Options, say: (line: string) => void): Promise<Sample[]> {
  return onStand(async ({ act, readers, door }) => {
    const rate = single(options, 'rate')
    const events = Math.ceil(single(options, 'seconds') * rate)
    await warmUp([act], single(options, 'warm'))
    const samples: Sample[] = []
    for (const count of list(options, 'readers')) {
      samples.push(
        ...(await alternately(ways, single(options, 'runs'), async (way, run) => {
          if (way === 'streams') await readers.ask('open', { ...door, path: '/stream', count })
          else await enterCrowd(act, { count, qos: 0 })
          const measured = way === 'streams' ? toStreams : deliver
          const of = { rate, subscribers: count }
          await measured({ ...act, readers }, { ...of, events: 5 * rate })
          const { cpu, p50, p99, lost } = await measured({ ...act, readers }, { ...of, events })
          say(`${way}: run ${run}, ${count}: ${cpu.toFixed(1)} µs, p99 ${p99} ms`)
          await readers.ask('close', {})
          await act.crowd.ask('dismiss', {})
          await new Promise((resolve) => setTimeout(resolve, 1_000))
          return { case: counted(count, 'reader'), system: way, run, figures: { cpu, p50, p99, lost } }
        })),
      )
    }
    return samples
  })
}

/** Like `deliver`, to the streams. */
async function toStreams(
  { peer, publishers, readers }: Act & { readers: Readers },
  of: { events: number; rate: number; subscribers: number },
) {
  const count = of.events * of.subscribers
  await readers.ask('begin', { room: count })
  const cpuOf = await countCpu(peer)
  await publishers.ask('pace', { count: of.events, intervalMs: 1000 / of.rate })
  const { received, p50, p99 } = await readers.ask('finish', { count })
  const cpu = await cpuOf(received)
  return { cpu, p50, p99, lost: count - received }
}

/** Each figure is of a hub of its own: what the others freed would be used again. */
function idle(options: Options, say: (line: string) => void): Promise<Sample[]> {
  const count = single(options, 'idle')
  return alternately(ways, Math.min(3, single(options, 'runs')), (way, run) =>
    onStand(async ({ hub, act, readers, door }) => {
      const join = (count: number) =>
        way === 'streams'
          ? readers.ask('open', { ...door, path: '/stream', count })
          : enterCrowd(act, { count, qos: 0 })
      await join(firstIdle)
      const before = await hub.usage({ collected: true })
      await join(count)
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      const kilobytes = ((await hub.usage({ collected: true })).bytes - before.bytes) / 1000 / count
      say(`${way}: run ${run}, idle: ${kilobytes.toFixed(1)} kB`)
      return { case: counted(count, 'idle connection'), system: way, run, figures: { kilobytes } }
    }),
  )
}

function now(options: Options, say: (line: string) => void): Promise<Sample[]> {
  return onStand(async ({ hub, act, readers, door }) => {
    await warmUp([act], 500)
    const [livestream] = hub.publishers[0]?.livestreams ?? []
    const path = `/livestreams/${livestream?.id}/now`
    const count = single(options, 'asks')
    const asking = { ...door, path, connections: 8 }
    await readers.ask('ask', { ...asking, count })
    return alternately(['now', 'now, 304'], single(options, 'runs'), async (way, run) => {
      const header = way === 'now' ? {} : { header: 'If-None-Match: *' }
      const cpuOf = await countCpu(hub)
      const { ms, failed } = await readers.ask('ask', { ...asking, ...header, count })
      const asked = await cpuOf(count)
      if (failed > 0) throw new Error(`${failed} questions failed`)
      say(`${way}: run ${run}: ${asked.toFixed(0)} µs`)
      return { case: way, system: 'streams', run, figures: { asked, rate: (count / ms) * 1000 } }
    })
  })
}
