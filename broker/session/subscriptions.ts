import type { Journal } from '../../journal/journal.ts'
import type { Qos } from '../connection/wire.ts'
import type { Session } from './session.ts'

/** Which session that is connected here holds which filter. */
export interface Routes {
  /** Filters of persistent sessions above QoS 0. */
  persistent: Subscriptions<Session>
  /** All other filters. */
  live: Subscriptions<Session>
}

type Subscriptions<Holder> = ReturnType<typeof createSubscriptions<Holder>>

/**
 * Topic filters and who holds them, as a tree of levels: finding the holders of a topic costs the depth
 * of the topic, not the number of filters.
 */
export function createSubscriptions<Holder>() {
  const nobody: ReadonlyMap<Holder, Qos> = new Map()
  const root: Node<Holder> = { children: undefined, holders: undefined }

  return {
    add(filter: string, holder: Holder, qos: Qos): void {
      let node = root
      for (const level of filter.split('/')) {
        node.children ??= new Map()
        let child = node.children.get(level)
        if (!child) {
          child = { children: undefined, holders: undefined }
          node.children.set(level, child)
        }
        node = child
      }
      node.holders ??= new Map()
      node.holders.set(holder, qos)
    },

    remove(filter: string, holder: Holder): void {
      removeBelow(root, filter.split('/'), 0, holder)
    },

    /** Each holder once, with the highest QoS of its matching filters [MQTT-3.3.5-1]. */
    match(topic: string): ReadonlyMap<Holder, Qos> {
      const found: Map<Holder, Qos>[] = []
      // [MQTT-4.7.2-1]: wildcards at the start do not match topics that begin with $.
      collect(root, topic.split('/'), 0, topic.startsWith('$'), found)
      const [only, ...others] = found
      if (!only) return nobody
      if (others.length === 0) return only
      const merged = new Map(only)
      for (const holders of others) {
        for (const [holder, qos] of holders) {
          if ((merged.get(holder) ?? -1) < qos) merged.set(holder, qos)
        }
      }
      return merged
    },
  }
}

/** Which filters a session has, and the routes to it while its client is connected. */
export function createGrants(parts: {
  routes: Routes
  journal: Journal
  isHere: (session: Session) => boolean
  /** Stores a session as it is. */
  storeRecord: (session: Session) => Promise<void>
}) {
  const { routes, journal, isHere, storeRecord } = parts

  return {
    /** Grants a filter in memory, from now on; `store` makes it last. */
    subscribe(session: Session, filter: string, qos: Qos): void {
      const before = session.subscriptions.get(filter)
      if (before?.qos === qos && !before.isEnding) return
      unsubscribe(session, filter)
      const isSame = before !== undefined && before.qos > 0 && qos > 0
      session.subscriptions.set(filter, { qos, since: isSame ? before.since : journal.head() })
      if (isHere(session)) routesOf(session, qos).add(filter, session, qos)
    },

    unsubscribe,

    /** Takes filters of a persistent session away once that is stored. Rejects where it is not: the session keeps them. */
    async endSubscriptions(session: Session, filters: readonly string[]): Promise<void> {
      const ending = filters.flatMap((filter) => session.subscriptions.get(filter) ?? [])
      for (const subscription of ending) subscription.isEnding = true
      try {
        if (ending.length > 0) await storeRecord(session)
      } catch (error) {
        for (const subscription of ending) subscription.isEnding = false
        throw error
      }
      const isEnding = (filter: string) => session.subscriptions.get(filter)?.isEnding
      for (const filter of filters) if (isEnding(filter)) unsubscribe(session, filter)
    },

    /** Stores what a persistent session is subscribed to now. */
    async store(session: Session): Promise<void> {
      if (!session.clean) await storeRecord(session)
    },

    /** The client of the session is connected here, or is so no more. */
    join(session: Session): void {
      for (const [filter, { qos }] of session.subscriptions) routesOf(session, qos).add(filter, session, qos)
    },
    leave(session: Session): void {
      for (const [filter, { qos }] of session.subscriptions) routesOf(session, qos).remove(filter, session)
    },
  }

  function unsubscribe(session: Session, filter: string): void {
    const before = session.subscriptions.get(filter)
    if (!before) return
    session.subscriptions.delete(filter)
    if (isHere(session)) routesOf(session, before.qos).remove(filter, session)
  }

  function routesOf({ clean }: Session, qos: Qos): Routes['live'] {
    return !clean && qos > 0 ? routes.persistent : routes.live
  }
}

/** Most nodes have either children or holders: an empty map would cost more than the rest of a node. */
interface Node<Holder> {
  children: Map<string, Node<Holder>> | undefined
  holders: Map<Holder, Qos> | undefined
}

function removeBelow<Holder>(node: Node<Holder>, levels: string[], depth: number, holder: Holder): void {
  const level = levels[depth]
  if (level === undefined) {
    node.holders?.delete(holder)
    return
  }
  const child = node.children?.get(level)
  if (!child) return
  removeBelow(child, levels, depth + 1, holder)
  if (!child.holders?.size && !child.children?.size) node.children?.delete(level)
}

function collect<Holder>(
  node: Node<Holder>,
  levels: string[],
  depth: number,
  reserved: boolean,
  found: Map<Holder, Qos>[],
): void {
  const wildcards = !(reserved && depth === 0)
  if (wildcards) addHolders(node.children?.get('#'), found) // also the parent level itself, §4.7.1.2
  const level = levels[depth]
  if (level === undefined) {
    addHolders(node, found)
    return
  }
  const named = node.children?.get(level)
  if (named) collect(named, levels, depth + 1, reserved, found)
  const any = wildcards ? node.children?.get('+') : undefined
  if (any) collect(any, levels, depth + 1, reserved, found)
}

function addHolders<Holder>(node: Node<Holder> | undefined, found: Map<Holder, Qos>[]): void {
  if (node?.holders && node.holders.size > 0) found.push(node.holders)
}
