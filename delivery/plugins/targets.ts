import { type ErrorItem, errorItem, pathOf, quote } from '../../event/error.ts'
import { isRecord } from '../../event/json.ts'
import type { EventKind } from '../../event/kind.ts'
import type { HubEvent } from '../../event/schema.ts'

/** A plugin target, as the operator configures it. Further fields belong to its driver. */
export interface PluginTarget {
  type: string
  autoEnable?: boolean
  url?: string
  /** File of the driver. Without a driver, the hub posts the items to `url`. */
  driver?: string
  [field: string]: unknown
}

const maxWarnings = 20

/** A target that gets an event. `plugin`: see `PluginItem`. */
interface Enabled {
  type: string
  plugin: Record<string, unknown>
}

/**
 * The targets that get an event (service.md §4.2, design.md §10). The `plugins` of the event name targets. Music on the
 * playing topic also goes to targets with `autoEnable`. Each target is listed once. One entry with `isDeactivated`
 * excludes its target, whatever other entries say.
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

/** The name of the queue of a target: `plugins.dts` for type `dts`. */
export function queueOf(type: string): string {
  return `plugins.${type}`
}

/**
 * Warnings about entries in `plugins` that name no configured target. At most `maxWarnings`: an event may have
 * thousands of entries.
 */
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

/** Whether targets with `autoEnable` get the event. They get only music that plays now. */
function enablesItself(event: HubEvent, { suffix }: EventKind): boolean {
  return suffix === 'track/playing' && 'type' in event && event.type === 'music'
}

/** The schemas of control and data events do not check `plugins`. */
function entriesOf(event: HubEvent): Record<string, unknown>[] {
  const plugins = 'plugins' in event ? event.plugins : undefined
  return Array.isArray(plugins) ? plugins.map((entry) => (isRecord(entry) ? entry : {})) : []
}
