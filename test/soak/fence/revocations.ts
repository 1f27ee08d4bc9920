import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from '../../random.ts'
import type { Issued } from '../../start-hub.ts'
import { comes } from '../../until.ts'
import { type Client, enter, Refused } from './client.ts'
import type { ClusterNode } from './cluster.ts'

/** Revokes credentials one by one, on random nodes. Meanwhile a client of each credential connects to random nodes. */
export function createRevocations(parts: {
  logins: readonly Issued[]
  nodes: readonly [ClusterNode, ...ClusterNode[]]
  random: Random
}) {
  const { logins, nodes, random } = parts
  const revoked: Issued[] = []
  const inside = new Map<Issued, Client>()

  return {
    revoked,

    async run(seconds: number, isOver: () => boolean): Promise<void> {
      await Promise.all([revokeAll(seconds, isOver), ...logins.map((login) => keepComing(login, isOver))])
    },

    /** Revoked credentials that are still connected, or that a node still accepts. */
    async admitted(): Promise<string[]> {
      const isGone = (login: Issued) => !inside.get(login)?.isOpen
      await comes(() => revoked.every(isGone), 10_000)
      const still = revoked.filter((login) => !isGone(login))
      const found = still.map(({ username }) => `${username} is still connected`)
      for (const node of nodes) {
        for (const login of revoked) {
          if (!(await isRefused(node, login))) found.push(`${login.username} gets in on node ${node.index}`)
        }
      }
      return found
    },

    leave: () => Promise.all([...inside.values()].map((client) => client.leave())),
  }

  async function revokeAll(seconds: number, isOver: () => boolean): Promise<void> {
    for (const login of logins) {
      await delay((random.between(0.2, 1.2) * seconds * 1000) / logins.length)
      while (!isOver() && !(await isRevoked(login))) await delay(100)
      if (isOver()) return
    }
  }

  async function isRevoked(login: Issued): Promise<boolean> {
    try {
      await random.oneOf(nodes).ask('credentials.revoke', { username: login.username }, 3_000)
    } catch (error) {
      // If the credential is gone, an earlier attempt has revoked it without an answer.
      if (!(error instanceof Error && /there is no credential/.test(error.message))) return false
    }
    revoked.push(login)
    return true
  }

  async function keepComing(login: Issued, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      try {
        const client = await comeIn(random.oneOf(nodes), login)
        inside.set(login, client)
        await Promise.race([client.closed, delay(5_000)])
        if (client.isOpen && !isOver() && random.happens(0.3)) await client.leave()
        while (client.isOpen && !isOver()) await delay(500)
      } catch {
        await delay(1_000)
      }
    }
  }

  /** Whether the node refuses the credential. Without an answer, tries up to five times. */
  async function isRefused(node: ClusterNode, login: Issued): Promise<boolean> {
    for (let attempt = 0; attempt < 5; attempt++) {
      try {
        const client = await comeIn(node, login)
        await client.leave()
        return false
      } catch (error) {
        if (error instanceof Refused) return true
      }
    }
    return false
  }

  function comeIn(node: ClusterNode, login: Issued): Promise<Client> {
    return enter(node, { login, clientId: `with-${login.username}`, clean: true })
  }
}
