import type { Redis } from 'ioredis'
import { textOf } from './connection.ts'

export interface RedisAddress {
  readonly host: string
  readonly port: number
}

/** How often each Sentinel is asked, milliseconds. Usually one of its messages makes the node ask earlier. */
const lookMs = 1_000

/** What a Sentinel has answered last. */
interface Opinion {
  master: RedisAddress
  /** The number of the failover that made this server the master. The highest number is the latest failover. */
  epoch: number
  /** This Sentinel is about to promote a server. */
  isPromoting: boolean
}

/** A Sentinel, as far as its word about the master goes. */
export interface Voice {
  /** Which Sentinel it is. A Sentinel that is set up anew at the same address has another id. */
  id?: string
  /** The ids of the other Sentinels that it knows. */
  others: readonly string[]
  opinion?: Opinion
  /** Why it does not answer. Undefined: it does. */
  problem?: string
}

interface Watched extends Voice {
  /** For messages. */
  place: string
  /** Named in the configuration. Others come and go. */
  isConfigured: boolean
  asking: Redis
  /** Subscribed to the messages of the Sentinel. Such a connection takes no questions. */
  listening: Redis
}

export type Sentinels = ReturnType<typeof watchSentinels>

/**
 * Follows which server is the master. Asks all Sentinels, because in a split one of them may still name the old master
 * (`masterOf`).
 *
 * `open` makes a client for a Sentinel. `onChange` is called with the reason if the master is another one, or if there
 * is none.
 */
export function watchSentinels(parts: {
  sentinels: readonly RedisAddress[]
  /** The name under which the Sentinels know the server. */
  name: string
  open: (address: RedisAddress) => Redis
  onChange: (reason: string) => void
}) {
  const { sentinels, name, open, onChange } = parts
  const watched = new Map<string, Watched>()
  let waiting: (() => void)[] = []
  let master: ReturnType<typeof masterOf>
  let isClosed = false
  let hasAskedAll = false

  for (const address of sentinels) watch(address, { isConfigured: true })
  void Promise.all([...watched.values()].map(ask)).then(() => {
    hasAskedAll = true
    judge()
  })
  const timer = setInterval(() => {
    for (const sentinel of watched.values()) void look(sentinel)
  }, lookMs).unref()

  return {
    /** Resolves with the address of the master as soon as there is one. Calls `onProblem` with why there is none. */
    async master(onProblem: (problem: string) => void): Promise<RedisAddress> {
      for (;;) {
        if (isAddress(master)) return master
        const silent = [...watched.values()].find(({ problem }) => problem !== undefined)
        const problem = master ? undecided[master] : silent?.problem
        if (hasAskedAll && problem !== undefined) onProblem(problem)
        await new Promise<void>((resolve) => waiting.push(resolve))
      }
    },

    close(): void {
      isClosed = true
      clearInterval(timer)
      for (const sentinel of watched.values()) leave(sentinel)
    },
  }

  function watch(address: RedisAddress, of: { isConfigured: boolean; id?: string }): void {
    const place = `${address.host}:${address.port}`
    if (watched.has(place)) return
    const sentinel: Watched = { ...of, place, others: [], asking: open(address), listening: open(address) }
    const { asking, listening } = sentinel
    watched.set(place, sentinel)
    asking.on('error', (error) => {
      sentinel.problem = `the Sentinel ${place}: ${textOf(error)}`
    })
    asking.on('ready', () => void look(sentinel))
    listening.on('error', () => undefined) // `asking` has the same error
    listening.on('ready', () => {
      listening.psubscribe('*').catch(() => undefined) // the next connection subscribes again
    })
    listening.on('pmessage', () => void look(sentinel))
  }

  async function look(sentinel: Watched): Promise<void> {
    await ask(sentinel)
    if (hasAskedAll) judge()
  }

  /** Never rejects: `problem` has the reason. */
  async function ask(sentinel: Watched): Promise<void> {
    const { asking } = sentinel
    try {
      const [id, others, about, address] = await Promise.all([
        asking.call('SENTINEL', 'MYID'),
        asking.call('SENTINEL', 'SENTINELS', name),
        asking.call('SENTINEL', 'MASTER', name),
        asking.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name),
      ])
      if (isClosed) return
      sentinel.opinion = opinionOf(recordOf(about), address)
      sentinel.id = String(id)
      delete sentinel.problem
      watchOthers(sentinel, Array.isArray(others) ? others.map(recordOf) : [])
    } catch (error) {
      // What it said about the master still counts. It may have died while it promoted a server.
      if (sentinel.opinion) sentinel.opinion.isPromoting = false
      sentinel.problem ??= `the Sentinel ${sentinel.place}: ${textOf(error)}`
    }
  }

  /** Watches the Sentinels that the configuration lacks. */
  function watchOthers(sentinel: Watched, others: readonly Record<string, string>[]): void {
    sentinel.others = others.flatMap(({ runid }) => runid ?? [])
    if (watched.size > others.length) return
    for (const { ip, port, runid: id } of others) {
      if (ip && id) watch({ host: ip, port: Number(port) }, { isConfigured: false, id })
    }
  }

  function judge(): void {
    if (isClosed) return
    for (const [place, sentinel] of watched) {
      if (sentinel.isConfigured || !isGone(sentinel, [...watched.values()])) continue
      watched.delete(place)
      leave(sentinel)
    }
    const before = master
    master = masterOf([...watched.values()])
    if (isAddress(before) && typeof master === 'string') onChange(undecided[master])
    else if (isAddress(before) && isAddress(master) && !isSame(before, master))
      onChange('another server is the master now')
    const proceeding = waiting
    waiting = []
    for (const proceed of proceeding) proceed()
  }
}

/** Why Sentinels that answer name no master. */
const undecided = {
  promoting: 'the Sentinels replace the master',
  disputed: 'the Sentinels name different servers as the master',
}

/**
 * Which server is the master. The latest failover counts: of a Sentinel that still tries to promote a server after
 * another has finished a later failover, nothing will come. `promoting`: a Sentinel is about to promote a server. What
 * the old master takes then may be lost. `disputed`: no server has most of those that know the latest failover. Two
 * forced failovers at once can have one number, and the Sentinels never settle that. Nodes that each believed another
 * Sentinel would write to different servers. Undefined: no Sentinel has answered yet.
 */
export function masterOf(voices: readonly Voice[]): RedisAddress | keyof typeof undecided | undefined {
  const opinions = voices.flatMap((voice) => (voice.opinion && !isGone(voice, voices) ? voice.opinion : []))
  const epoch = Math.max(...opinions.map((opinion) => opinion.epoch))
  const latest = opinions.filter((opinion) => opinion.epoch === epoch)
  if (latest.some(({ isPromoting }) => isPromoting)) return 'promoting'
  if (latest.length === 0) return undefined
  const named = latest.map(({ master }) => master)
  return (
    named.find((one) => 2 * named.filter((other) => isSame(one, other)).length > named.length) ?? 'disputed'
  )
}

/**
 * Whether a silent Sentinel was replaced: none of those that answer knows it. New Sentinels count their failovers from
 * the beginning, so the word of the old ones would count for ever. In a split, Sentinels do know those of the other
 * side.
 */
function isGone({ id, problem }: Voice, voices: readonly Voice[]): boolean {
  if (problem === undefined || id === undefined) return false
  const answering = voices.filter((voice) => voice.opinion && voice.problem === undefined)
  return answering.length > 0 && !answering.some(({ others }) => others.includes(id))
}

/**
 * What a Sentinel says with its answers to MASTER and then to GET-MASTER-ADDR-BY-NAME. During a failover, `about` names
 * the old master until the end, and `address` the promoted server as soon as it has become a master. Otherwise only
 * `about` counts: a whole failover may lie between the two answers, and then the epoch is not that of `address`. Throws
 * if the answers name no master.
 */
export function opinionOf(about: Record<string, string>, address: unknown): Opinion {
  const { ip = '', port, flags = '', 'config-epoch': epoch } = about
  if (!ip || !epoch) throw new Error('the Sentinel knows no master')
  const known = { host: ip, port: Number(port) }
  const [host, promotedPort] = Array.isArray(address) ? address.map(String) : []
  const named = host ? { host, port: Number(promotedPort) } : known
  const isUnderWay = flags.split(',').includes('failover_in_progress')
  return {
    master: isUnderWay ? named : known,
    epoch: Number(epoch),
    isPromoting: isUnderWay && isSame(named, known),
  }
}

function leave({ asking, listening }: Watched): void {
  asking.disconnect()
  listening.disconnect()
}

/** Makes a record from a list in which each name is followed by its value. */
function recordOf(fields: unknown): Record<string, string> {
  const list = Array.isArray(fields) ? fields.map(String) : []
  return Object.fromEntries(list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1] ?? '']] : [])))
}

function isSame(left: RedisAddress, right: RedisAddress): boolean {
  return left.host === right.host && left.port === right.port
}

function isAddress(master: ReturnType<typeof masterOf>): master is RedisAddress {
  return typeof master === 'object'
}
