import type { Principal } from '../../acl/principal.ts'

/** Decides who may connect, and what each client may do. In the hub, `acl/` implements it. */
export interface Access {
  /** The principal of a user name and password. Undefined: the log-in is refused. */
  authenticate(username: string, password: Buffer | undefined): Principal | undefined
  /** The principal of a client without user name. Absent: such a client is refused. */
  anonymous?: Principal
  /** Whether the credential of the principal is still valid. It may have ended since the log-in. */
  isValid(principal: Principal): boolean
  /** Whether the principal may publish on any topic at all. */
  publishes(principal: Principal): boolean
  mayPublish(principal: Principal, topic: string): { allowed: boolean }
  maySubscribe(principal: Principal, filter: string): { allowed: true } | { allowed: false; reason: string }
  mayReceive(principal: Principal, topic: string): boolean
}
