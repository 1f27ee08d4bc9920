import type { Principal } from '../../acl/principal.ts'

/** Who may connect and what they may do; `acl/` in the hub. */
export interface Access {
  /** The principal behind a log-in, or undefined. */
  authenticate(username: string, password: Buffer | undefined): Principal | undefined
  /** The principal of a client without user name. Absent: such a client is refused. */
  anonymous?: Principal
  /** Whether the principal may still do anything: its credential may have ended since the log-in. */
  isValid(principal: Principal): boolean
  /** Whether it may publish anything at all. */
  publishes(principal: Principal): boolean
  mayPublish(principal: Principal, topic: string): { allowed: boolean }
  maySubscribe(principal: Principal, filter: string): { allowed: true } | { allowed: false; reason: string }
  mayReceive(principal: Principal, topic: string): boolean
}
