import type { Redis } from 'ioredis'
import { textOf } from './connection.ts'

export interface RedisAddress {
  readonly host: string
  readonly port: number
}

/** How often each Sentinel is asked, milliseconds. Usually one of its messages makes the node ask earlier. */
const lookMs = 1_000

/** What a Sentinel says about the master. */
interface Opinion {
  master: RedisAddress
  /** The number of the failover that made this server the master. The highest number is the latest failover. */
  epoch: number
  /** This Sentinel is about to promote a server. */
  isPromoting: boolean
}

interface Watched {
  /** For messages. */
  place: string
  asking: Redis
  /** Subscribed to the messages of the Sentinel. Such a connection takes no questions. */
  listening: Redis
  opinion?: Opinion
  problem?: string
}

export type Sentinels = ReturnType<typeof watchSentinels>

/**
 * Follows which server is the master. Asks all Sentinels, because in a split one of them may still name the old master:
 * the latest failover counts. While a Sentinel promotes a server, there is no master. What the old master takes then
 * may be lost.
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
  /** Undefined: no Sentinel has answered yet, or one is promoting a server. */
  let master: RedisAddress | undefined
  let isClosed = false
  let hasAskedAll = false

  for (const address of sentinels) watch(address)
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
        if (master) return master
        const problem = problemOf([...watched.values()])
        if (hasAskedAll && problem !== undefined) onProblem(problem)
        await new Promise<void>((resolve) => waiting.push(resolve))
      }
    },

    close(): void {
      isClosed = true
      clearInterval(timer)
      for (const { asking, listening } of watched.values()) {
        asking.disconnect()
        listening.disconnect()
      }
    },
  }

  function watch(address: RedisAddress): void {
    const place = `${address.host}:${address.port}`
    if (watched.has(place)) return
    const sentinel: Watched = { place, asking: open(address), listening: open(address) }
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
      const [address, fields] = await Promise.all([
        asking.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name),
        asking.call('SENTINEL', 'MASTER', name),
      ])
      const about = recordOf(fields)
      sentinel.opinion = opinionOf(address, about)
      delete sentinel.problem
      if (watched.size <= Number(about['num-other-sentinels'])) await watchOthers(asking)
    } catch (error) {
      // What it said about the master still counts. It may have died while it promoted a server.
      if (sentinel.opinion) sentinel.opinion.isPromoting = false
      sentinel.problem ??= `the Sentinel ${sentinel.place}: ${textOf(error)}`
    }
  }

  /** Watches the Sentinels that the configuration lacks. */
  async function watchOthers(asking: Redis): Promise<void> {
    const others = await asking.call('SENTINEL', 'SENTINELS', name)
    if (isClosed || !Array.isArray(others)) return
    for (const { ip, port } of others.map(recordOf)) if (ip) watch({ host: ip, port: Number(port) })
  }

  function judge(): void {
    if (isClosed) return
    const opinions = [...watched.values()].flatMap(({ opinion }) => opinion ?? [])
    const isPromoting = opinions.some((opinion) => opinion.isPromoting)
    const [latest] = opinions.sort((left, right) => right.epoch - left.epoch)
    const before = master
    master = isPromoting ? undefined : latest?.master
    if (before && !master) onChange(promoting)
    else if (before && master && !isSame(before, master)) onChange('another server is the master now')
    const proceeding = waiting
    waiting = []
    for (const proceed of proceeding) proceed()
  }
}

const promoting = 'the Sentinels replace the master'

function problemOf(watched: readonly Watched[]): string | undefined {
  if (watched.some(({ opinion }) => opinion?.isPromoting)) return promoting
  return watched.find(({ problem }) => problem !== undefined)?.problem
}

/**
 * `about` names the old master until the end of the failover. `address` is the promoted server as soon as it has become
 * a master.
 */
function opinionOf(address: unknown, about: Record<string, string>): Opinion {
  const [host, port] = Array.isArray(address) ? address.map(String) : []
  if (!host) throw new Error('the Sentinel knows no master')
  const master = { host, port: Number(port) }
  const isUnderWay = about.flags?.split(',').includes('failover_in_progress') ?? false
  const isPromoting = isUnderWay && isSame(master, { host: about.ip ?? '', port: Number(about.port) })
  return { master, epoch: Number(about['config-epoch']), isPromoting }
}

/** Makes a record from a list in which each name is followed by its value. */
function recordOf(fields: unknown): Record<string, string> {
  const list = Array.isArray(fields) ? fields.map(String) : []
  return Object.fromEntries(list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1] ?? '']] : [])))
}

function isSame(left: RedisAddress, right: RedisAddress): boolean {
  return left.host === right.host && left.port === right.port
}
