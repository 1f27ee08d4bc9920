import { isTemporary } from '../../acl/principal.ts'
import type { Message } from '../../event/message.ts'
import type { Qos } from '../connection/protocol.ts'
import type { Access } from '../login/access.ts'
import type { Session } from './session.ts'

/** Topic filters and their holders, as a tree of topic levels. The number of filters does not slow down `match`. */
export function createSubscriptions<Holder>() {
  const nobody: ReadonlyMap<Holder, Qos> = new Map()
  const root: FilterNode<Holder> = { children: undefined, holders: undefined }

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

    isEmpty: (): boolean => !root.children?.size,

    /** Returns each holder of a matching filter, with the highest QoS [MQTT-3.3.5-1]. */
    match(topic: string): ReadonlyMap<Holder, Qos> {
      if (!root.children?.size) return nobody
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

export type Routes = ReturnType<typeof createRoutes>

/** The filters of the sessions whose clients are connected to this node. */
export function createRoutes() {
  const persistent = createSubscriptions<Session>()
  const pages = createSubscriptions<Session>()
  const live = createSubscriptions<Session>()

  function routesOf({ clean, principal }: Session, qos: Qos): typeof live {
    if (!clean && qos > 0) return persistent
    return isTemporary(principal) ? pages : live
  }

  return {
    /** Filters of persistent sessions above QoS 0. */
    persistent,
    /** Filters of pages, whose sessions are always clean. */
    pages,
    /** All other filters. */
    live,
    add: (filter: string, session: Session, qos: Qos): void =>
      routesOf(session, qos).add(filter, session, qos),
    remove: (filter: string, session: Session, qos: Qos): void =>
      routesOf(session, qos).remove(filter, session),
  }
}

/** A session that gets a message. `granted`: the highest QoS of the matching filters. */
export type Recipient = readonly [session: Session, granted: Qos]

/** The clients other than pages that get a message live, each once [MQTT-3.3.5-1]. */
export function recipientsOf(
  { topic, qos }: Pick<Message, 'topic' | 'qos'>,
  routes: Routes,
  mayReceive: Access['mayReceive'],
): Recipient[] {
  const permitted = createPermittedCheck(topic, mayReceive)
  // Compares with undefined: to test truthiness, V8 would have to fetch the object.
  const isMeant = (session: Session) => session.outgoing !== undefined && permitted(session)
  const holders = routes.live.match(topic)
  const persistent = routes.persistent.match(topic)
  // A session that also matches in `persistent` gets the message by `persistentRecipientsOf`.
  const recipients = [...holders].filter(
    ([session]) => isMeant(session) && (qos === 0 || session.clean || !persistent.has(session)),
  )
  if (qos > 0) return recipients
  // At QoS 0, persistent sessions get the message live too.
  const others = [...persistent]
  return [...recipients, ...others.filter(([session]) => isMeant(session) && !holders.has(session))]
}

/** The pages that get a message, each once. */
export function pagesOf(
  { topic }: Pick<Message, 'topic'>,
  { pages }: Routes,
  mayReceive: Access['mayReceive'],
): Recipient[] {
  return permittedHolders(pages, topic, mayReceive).filter(([session]) => session.outgoing !== undefined)
}

/** The permitted persistent sessions with a matching filter above QoS 0. */
export function persistentRecipientsOf(
  topic: string,
  { persistent }: Routes,
  mayReceive: Access['mayReceive'],
): Recipient[] {
  return permittedHolders(persistent, topic, mayReceive)
}

function permittedHolders(
  filters: Routes['live'],
  topic: string,
  mayReceive: Access['mayReceive'],
): Recipient[] {
  const holders = filters.match(topic)
  if (holders.size === 0) return []
  const permitted = createPermittedCheck(topic, mayReceive)
  return [...holders].filter(([session]) => permitted(session))
}

/** Asks `mayReceive` once per set of permissions: many sessions share a set. */
function createPermittedCheck(
  topic: string,
  mayReceive: Access['mayReceive'],
): (session: Session) => boolean {
  let answers: Map<string, boolean> | undefined
  let lastPermission: string | undefined
  let lastAnswer = false
  return (session) => {
    const { permission } = session
    if (permission === lastPermission) return lastAnswer
    const answer = answers?.get(permission) ?? mayReceive(session.principal, topic)
    // The first permission needs no map: for most messages there is only one.
    if (lastPermission !== undefined) answers ??= new Map([[lastPermission, lastAnswer]])
    answers?.set(permission, answer)
    lastPermission = permission
    lastAnswer = answer
    return answer
  }
}

/** A node of the tree. Maps are made when needed, to save memory. */
interface FilterNode<Holder> {
  children: Map<string, FilterNode<Holder>> | undefined
  holders: Map<Holder, Qos> | undefined
}

function removeBelow<Holder>(
  node: FilterNode<Holder>,
  levels: string[],
  depth: number,
  holder: Holder,
): void {
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
  node: FilterNode<Holder>,
  levels: string[],
  depth: number,
  reserved: boolean,
  found: Map<Holder, Qos>[],
): void {
  const wildcards = !(reserved && depth === 0)
  if (wildcards) addHolders(node.children?.get('#'), found) // `a/#` matches `a` as well, §4.7.1.2
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

function addHolders<Holder>(node: FilterNode<Holder> | undefined, found: Map<Holder, Qos>[]): void {
  if (node?.holders && node.holders.size > 0) found.push(node.holders)
}
