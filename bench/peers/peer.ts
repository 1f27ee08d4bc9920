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
  /** Usage of the delivering process, without a validator beside it. `collected`: collects garbage first, if it can. */
  usage(of?: { collected: boolean }): Promise<Usage>
  /** Ids of its processes. */
  pids: readonly number[]
  /** Adds one more credential that no client uses. */
  addCredential?: () => Promise<unknown>
  /** How many persistent sessions the subscribers have. */
  sessions?: () => Promise<number>
  /** Its Redis, if it stores in one. */
  redis?: Redis
  /** Starts one more node of this system on the same Redis. */
  startBeside?: () => Promise<Peer>
  stop(): Promise<void>
}

/** A Redis that a system stores in. */
export interface Redis {
  pid: number
  port: number
  /** Variables that make a node use this Redis. */
  env: Record<string, string>
  usage(): Promise<Usage>
  /** Since its start: the commands, also those of scripts, and the bytes that it received. */
  counters(): Promise<{ commands: number; bytes: number }>
  /** Sends one command. */
  ask(command: string, ...args: string[]): Promise<unknown>
  /** Directory of its files. */
  directory: string
  /** Memory that it uses, bytes. */
  memory(): Promise<number>
  /** Rewrites its append-only file, which then holds only the stored data. */
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

/** Starts a peer. Resolves with undefined if it is not installed here. */
export type StartPeer = (ground: Ground) => Promise<Peer | undefined>

/** For a peer that lets everybody in: publishers without a login, for all institutions. */
export function anyPublishers(ground: Ground): Peer['publishers'] {
  return ground.institutions.map(({ livestreams }) => ({ login: undefined, livestreams }))
}
