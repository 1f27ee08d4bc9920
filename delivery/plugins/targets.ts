import { type ErrorItem, errorItem, pathOf, quote } from '../../event/error.ts'
import { isRecord } from '../../event/json.ts'
import type { EventKind } from '../../event/kind.ts'
import type { HubEvent } from '../../event/schema.ts'

/** A plugin target of the configuration. Its further fields belong to its driver. */
export interface PluginTarget {
  type: string
  autoEnable?: boolean
  url?: string
  /** File of the driver; without it items are posted to `url`. */
  driver?: string
  [field: string]: unknown
}

const maxWarnings = 20

/** A target that gets an event, with the entry of the event's `plugins` that says so. */
interface Enabled {
  type: string
  plugin: Record<string, unknown>
}

/**
 * The targets an event is for, each once (service.md §4.2, design.md §10): those that its `plugins` name, and for
 * music on the playing topic those that enable themselves. One entry with `isDeactivated` keeps a target out.
 */
export function enabledTargets(
  event: HubEvent,
  kind: EventKind,
  targets: readonly PluginTarget[],
): Enabled[] {
  const entries = entriesOf(event)
  return targets.flatMap(({ type, autoEnable = false }) => {
    const own = entries.filter((entry) => entry.type === type)
    if (own.some((entry) => entry.isDeactivated === true)) return []
    const [plugin] = own
    if (plugin) return [{ type, plugin }]
    return autoEnable && enablesItself(event, kind) ? [{ type, plugin: { type } }] : []
  })
}

/** The queue of a target. */
export function queueOf(type: string): string {
  return `plugins.${type}`
}

/** Warnings about entries without a target: only the first `maxWarnings`, since an event may have thousands. */
export function unknownPlugins(event: HubEvent, targets: readonly PluginTarget[]): ErrorItem[] {
  const entries = entriesOf(event)
  if (entries.length === 0) return []
  const known = new Set(targets.map(({ type }) => type))
  const names = [...known].join(', ')
  const expected = names === '' ? 'there are no targets here' : `expected one of ${names}`
  const unknown: ErrorItem[] = []
  for (const [index, { type, isDeactivated }] of entries.entries()) {
    if (unknown.length === maxWarnings) break
    if (isDeactivated === true || (typeof type === 'string' && known.has(type))) continue
    const path = pathOf('plugins', index, 'type')
    // An event may have entries without a type (service.md §2.6), so this only warns.
    const said = type === undefined ? 'none' : quote(type)
    unknown.push(errorItem('plugin.unknown', path, `${said}, ${expected}; skipped`))
  }
  return unknown
}

/** Whether targets with `autoEnable` get the event: music that plays now. */
function enablesItself(event: HubEvent, { suffix }: EventKind): boolean {
  return suffix === 'track/playing' && 'type' in event && event.type === 'music'
}

/** Checks `plugins` here, because the schemas of control and data events do not check the field. */
function entriesOf(event: HubEvent): Record<string, unknown>[] {
  const plugins = 'plugins' in event ? event.plugins : undefined
  return Array.isArray(plugins) ? plugins.map((entry) => (isRecord(entry) ? entry : {})) : []
}
