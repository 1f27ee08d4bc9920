import type { Livestream } from '../../validator/feed/feed.ts'
import type { Usage } from '../child.ts'
import type { Address } from '../load/light-client.ts'
import type { Login } from '../load/packets.ts'
import type { Ground } from './ground.ts'

/** A system that does the job: takes events from publishers, and brings the valid ones to subscribers. */
export interface Peer {
  name: PeerName
  address: Address
  /** How to log in as a subscriber of everything. */
  subscriber: Login | undefined
  /** How to log in as a publisher, and for which livestreams. */
  publishers: { login: Login | undefined; livestreams: Livestream[] }[]
  /**
   * What the process uses that delivers; a validator beside it is not counted. `collected`: without garbage,
   * where there is any.
   */
  usage(of?: { collected: boolean }): Promise<Usage>
  /** Its processes. */
  pids: readonly number[]
  /** One more, that nobody uses. */
  addCredential?: () => Promise<unknown>
  /** How many persistent sessions the subscribers have. */
  sessions?: () => Promise<number>
  /** What it stores in, if that is a Redis. */
  redis?: Redis
  /** One more of it on the same Redis. */
  startBeside?: () => Promise<Peer>
  stop(): Promise<void>
}

/** A Redis that a system stores in. */
export interface Redis {
  pid: number
  port: number
  /** What a node needs to use it. */
  env: Record<string, string>
  usage(): Promise<Usage>
  /** Since it started: commands, also those of scripts, and bytes that it was sent. */
  counters(): Promise<{ commands: number; bytes: number }>
  /** One command. */
  ask(command: string, ...args: string[]): Promise<unknown>
  /** Where its files are. */
  directory: string
  /** Bytes that it has taken for its data. */
  memory(): Promise<number>
  /** Rewrites its append-only file, which then has what is stored and no more. */
  rewrite(): Promise<void>
  stop(): Promise<void>
}

export type PeerName =
  | 'hub'
  | 'hub on Redis'
  | 'Mosquitto + validator'
  | 'NATS + validator'
  | 'plain Aedes'
  | 'Aedes on Redis'
  | 'bare sockets'

/** Undefined: not installed here. */
export type StartPeer = (ground: Ground) => Promise<Peer | undefined>

/** A peer that lets everybody in publishes for all institutions. */
export function anyPublishers(ground: Ground): Peer['publishers'] {
  return ground.institutions.map(({ livestreams }) => ({ login: undefined, livestreams }))
}
