import type { MaxAge } from '../../event/delivery-fields.ts'
import { isRecord } from '../../event/json.ts'
import type { EventKind, HubEvent } from '../../event/kind.ts'

/** A plugin target, as the operator configures it. Further fields belong to its driver. */
export interface PluginTarget {
  type: string
  autoEnable?: boolean
  url?: string
  /** For how long an event is worth delivering. Absent: always. */
  maxAge?: MaxAge
  /** An event is delivered this long after its acceptance, milliseconds. Absent: at once. */
  delay?: number
  /** File of the driver. Without a driver, the hub posts the items to `url`. */
  driver?: string
  [field: string]: unknown
}

/**
 * The targets that get an event (service.md §4.2, design.md §10). The `plugins` of the event name targets. Music that
 * plays now also goes to targets with `autoEnable`. Each target is listed once. One entry with `isDeactivated`
 * excludes its target, whatever other entries say. `plugin`: see `PluginItem`.
 */
export function enabledTargets(event: HubEvent, kind: EventKind, targets: readonly PluginTarget[]) {
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

/** Whether targets with `autoEnable` get the event. They get only music that plays now. */
function enablesItself(event: HubEvent, { isNow = false }: EventKind): boolean {
  return isNow && 'type' in event && event.type === 'music'
}

/** The schemas of control and data events do not check `plugins`. */
function entriesOf(event: HubEvent): Record<string, unknown>[] {
  const plugins = 'plugins' in event ? event.plugins : undefined
  return Array.isArray(plugins) ? plugins.map((entry) => (isRecord(entry) ? entry : {})) : []
}
