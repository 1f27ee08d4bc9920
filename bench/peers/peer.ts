import type { Livestream } from '../../validator/feed/feed.ts'
import type { Usage } from '../child.ts'
import type { Address } from '../load/light-client.ts'
import type { Login } from '../load/packets.ts'
import type { Build } from '../node.ts'
import type { Ground } from './ground.ts'

/** A system that the bench compares. It delivers valid events to subscribers. */
export interface Peer {
  name: PeerName
  address: Address
  /** The login of subscribers, which may read everything. Undefined if the system needs none. */
  subscriber: Login | undefined
  /** The logins of publishers, each with the livestreams that it may publish for. */
  publishers: { login: Login | undefined; livestreams: Livestream[] }[]
  /** Usage of the system, with that of a separate validator. `collected`: first collects garbage, if possible. */
  usage(of?: { collected: boolean }): Promise<Usage>
  /** Ids of the processes of the system. */
  pids: readonly number[]
  /** How many persistent sessions the subscribers have. */
  sessions?: () => Promise<number>
  /** How many PUBACKs of subscribers the system has read. */
  pubacks?: () => Promise<number>
  /** How many events the hub has counted as above its budget. */
  exceeded?: () => Promise<number>
  /** The Redis of the system, if it stores data in one. */
  redis?: Redis
  /** Starts one more node of this system on the same Redis. `build`: the node of another commit. */
  startBeside?: (build?: Build) => Promise<Peer>
  stop(): Promise<void>
}

/** A Redis in which a system stores its data. */
export interface Redis {
  pid: number
  port: number
  /** Variables that make a node use this Redis. */
  env: Record<string, string>
  usage(): Promise<Usage>
  /** Counts since the start of Redis: commands, also those of scripts, and received bytes. */
  counters(): Promise<{ commands: number; bytes: number }>
  /** Sends one command. */
  ask(command: string, ...args: string[]): Promise<unknown>
  stop(): Promise<void>
}

export type PeerName =
  | 'hub'
  | 'before'
  | 'hub on Redis'
  | 'one worker'
  | 'two workers'
  | 'Mosquitto + validator'
  | 'NATS + validator'
  | 'plain Aedes'
  | 'Aedes on Redis'
  | 'bare sockets'
  | 'bare sockets, QoS 1'
  | 'floor'

/** Starts a peer. Resolves with undefined if it is not installed here. */
export type StartPeer = (ground: Ground) => Promise<Peer | undefined>

/** For a system that needs no log-in: publishers without a login, for all institutions. */
export function anyPublishers(ground: Ground): Peer['publishers'] {
  return ground.institutions.map(({ livestreams }) => ({ login: undefined, livestreams }))
}
