import { pathToFileURL } from 'node:url'
import type { Log } from '../../telemetry/log.ts'
import type { Outcome } from '../target.ts'
import type { PluginTarget } from './targets.ts'

/** An item as a plugin target gets it (design.md §10). */
export interface PluginItem {
  /** `plugins.<type>.event` */
  action: string
  /** The event as published. */
  event: Record<string, unknown>
  /** The entry of the event's `plugins`, or one with the type alone where the target enables itself. */
  plugin: Record<string, unknown>
  /** Of the publisher. */
  institutionId: string
}

/** The facts about one attempt, for the driver. */
interface DeliveryContext {
  /** The same for every attempt of an item. */
  messageId: string
  /** From 1. */
  attempt: number
  /** Aborts at the deadline, and when the hub stops. */
  signal: AbortSignal
}

/** Hands items on to one plugin target. */
export interface PluginDriver {
  /**
   * Tries once. Resolves with nothing when the target has the item. Rejects when the hub is to try again, after a pause
   * that grows. An `Outcome` says more: that the target refuses this item, or when to come back.
   */
  deliver(item: PluginItem, context: DeliveryContext): Promise<Outcome | undefined>
  /** Called when the hub stops. */
  close?(): Promise<void> | void
}

/** The default export of a driver's file. */
export type CreateDriver = (
  /** The target as it stands in the configuration, with all its fields. */
  target: PluginTarget,
  hub: { log: Log },
) => PluginDriver | Promise<PluginDriver>

/** Loads the driver in a file. Throws when there is none. */
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
