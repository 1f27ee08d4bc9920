import { pathToFileURL } from 'node:url'
import type { Log } from '../../telemetry/log.ts'
import type { AttemptOutcome } from '../target.ts'
import type { PluginTarget } from './targets.ts'

/** An item as a plugin target gets it (design.md §10). */
export interface PluginItem {
  /** `plugins.<type>.event` */
  action: string
  /** The event as published. */
  event: Record<string, unknown>
  /**
   * The entry for this target in the event's `plugins`. If the target gets the event by `autoEnable`, there is no
   * entry. The hub then makes an object with only the type.
   */
  plugin: Record<string, unknown>
  /** Institution of the publisher. */
  institutionId: string
}

/** The facts about one attempt, for the driver. */
interface DeliveryContext {
  /** Id of the message: the same for every attempt of an item. */
  messageId: string
  /** Number of the attempt, from 1. */
  attempt: number
  /** Aborts at the deadline, and when the hub stops. */
  signal: AbortSignal
}

/** Delivers items to one plugin target. */
export interface PluginDriver {
  /**
   * Tries once to deliver an item. Undefined: the target has taken the item. If the promise rejects, the hub tries
   * again, after growing pauses. An `Outcome` says more: for example, that the target refuses the item, or how long to
   * wait.
   */
  deliver(item: PluginItem, context: DeliveryContext): Promise<AttemptOutcome | undefined>
  /** Called when the hub stops. */
  close?(): Promise<void> | void
}

/** Longest time of one attempt, milliseconds. */
export const attemptMs = 20_000

/**
 * Delivers for the hub: its client for webhooks, or the process of a `PluginDriver`. An attempt never rejects. It ends soon
 * after the deadline, and at once when `signal` aborts.
 */
export interface HubDriver {
  deliver(item: PluginItem, context: DeliveryContext): Promise<AttemptOutcome>
}

/** The default export of a driver's file. */
export type CreateDriver = (
  /** The target as it stands in the configuration, with all its fields. */
  target: PluginTarget,
  hub: { log: Log },
) => PluginDriver | Promise<PluginDriver>

/** Loads the driver in a file. Throws if the file cannot be loaded or has no driver. */
export async function loadDriver(path: string): Promise<CreateDriver> {
  const loaded: unknown = await import(pathToFileURL(path).href).catch((error: unknown) => {
    throw new Error(`the plugin driver ${path} cannot be loaded`, { cause: error })
  })
  if (isModule(loaded)) return loaded.default
  throw new Error(`the plugin driver ${path} has no default export that is a function`)
}

function isModule(loaded: unknown): loaded is { default: CreateDriver } {
  return (
    typeof loaded === 'object' &&
    loaded !== null &&
    'default' in loaded &&
    typeof loaded.default === 'function'
  )
}
