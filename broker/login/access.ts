import type { Principal } from '../../acl/principal.ts'

/** The access rules of the broker. In the hub, `acl/` implements them. */
export interface Access {
  /** The principal of a user name and password. Undefined: the log-in is refused. */
  authenticate(username: string, password: Buffer | undefined): Principal | undefined
  /** The principal of a client whose certificate names this user name. Absent, or undefined: the log-in is refused. */
  certified?(username: string): Principal | undefined
  /**
   * Waits for what other nodes have stored, before a log-in is refused. False: there is nothing to wait for. Absent:
   * there are no other nodes.
   */
  caughtUp?(): Promise<boolean>
  /** The principal of a client without user name. Absent: such a client is refused. */
  anonymous?: Principal
  /** Whether the user name is one of a credential for HTTPS: only the log says so. Absent: there are none. */
  isReader?(username: string): boolean
  /** Whether an operator has banned the client. `address`: undefined if it is not known. Absent: no client is banned. */
  isBanned?(username: string, clientId: string, address: string | undefined): boolean
  isValid(principal: Principal): boolean
  /** Whether the principal may publish on any topic at all. */
  publishes(principal: Principal): boolean
  mayPublish(principal: Principal, topic: string): { allowed: boolean }
  maySubscribe(principal: Principal, filter: string): { allowed: true } | { allowed: false; reason: string }
  mayReceive(principal: Principal, topic: string): boolean
}
