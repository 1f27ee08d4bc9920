import { type Principal, permissionKey } from '../../acl/principal.ts'
import type { Calls } from '../../store/nodes/calls.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Clients } from '../connection/client.ts'
import type { CleanSession, CleanSessions } from '../session/clean-sessions.ts'
import type { KnownSessions } from '../session/known-sessions.ts'
import type { LocalSessions } from '../session/local-sessions.ts'
import { underway } from '../session/session.ts'
import { PermissionsDiffer } from './claim.ts'

/** Asks another node to end the older connection of a client id. `permission`: that of the client that logs in now. */
interface Asked {
  clientId: string
  permission: string
}

/**
 * Ends the older connection of a client id, on whatever node [MQTT-3.1.4-2]. If that node does not answer, the log-in
 * goes on, and its claim takes over the session.
 */
export function createTakeOver(parts: {
  local: LocalSessions
  known: KnownSessions
  clients: Clients
  calls: Calls
  clean: CleanSessions
  nodes: Nodes
}) {
  const { local, known, clients, calls, clean, nodes } = parts
  calls.serve('take-over', async (asked) => {
    const { clientId, permission } = asked as Asked
    const session = local.connected(clientId)
    // The asking node may not know this client and its permissions yet (design.md §5).
    if (session && session.permission !== permission) return 'foreign'
    const processing = session ? underway(session) : []
    await takeOverHere(clientId)
    // This node answers only when the QoS 2 messages under way are settled. If the client repeats such a message, the
    // asking node must find it stored.
    await Promise.allSettled(processing)
    return 'taken over'
  })

  return {
    /** Of a clean session at another node, this node does not know: its claim fails, and then calls `clean`. */
    async any(clientId: string, principal: Principal): Promise<void> {
      await takeOverHere(clientId)
      const node = known.nodeOf(clientId)
      if (node !== undefined) await ask(node, clientId, principal)
    },

    /** Resolves with the clean session of a client, which the claim may replace now. */
    async clean(clientId: string, principal: Principal): Promise<CleanSession | undefined> {
      const session = await clean.read(clientId)
      if (!session || session.node === nodes.self || !nodes.isLiving(session.node)) return session
      if (session.permission !== permissionKey(principal)) throw new PermissionsDiffer()
      await ask(session.node, clientId, principal)
      return session
    },
  }

  async function ask(node: string, clientId: string, principal: Principal): Promise<void> {
    const asked: Asked = { clientId, permission: permissionKey(principal) }
    if ((await calls.ask(node, 'take-over', asked)) === 'foreign') throw new PermissionsDiffer()
  }

  async function takeOverHere(clientId: string): Promise<void> {
    const older = local.connected(clientId)?.connection
    older?.cut('takeover', 'another connection with the same client id')
    await (older && clients.byConnection.get(older)?.served)
  }
}
