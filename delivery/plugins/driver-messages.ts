import type { Outcome } from '../target.ts'
import type { PluginItem } from './driver.ts'
import type { PluginTarget } from './targets.ts'

/* What the node and the process of a driver say to each other, as JSON over the channel of `fork`. */

export type ToDriver =
  /** Comes once, first. `level`: the least level of the log. */
  | { kind: 'start'; file: string; target: PluginTarget; level: string }
  | { kind: 'deliver'; id: number; item: PluginItem; messageId: string; attempt: number }
  /** The signal of the attempt aborts. */
  | { kind: 'abort'; id: number; reason: string }
  /** The hub stops: close, and end. */
  | { kind: 'close' }

export type FromDriver =
  /** Comes every `beatMs`: the event loop of the driver runs. */
  | { kind: 'beat' }
  /** The driver can deliver. */
  | { kind: 'ready' }
  /** The driver cannot be loaded. The process ends. */
  | { kind: 'unusable'; reason: string }
  | { kind: 'outcome'; id: number; outcome: Outcome }
  /** A line of the log, as JSON. */
  | { kind: 'log'; line: string }
  /** So many lines of the log were left out, because they were too many. */
  | { kind: 'left-out'; lines: number }
  /** An error that nobody caught. The process ends. */
  | { kind: 'uncaught'; reason: string; stack: string }
  /** The driver has closed. Null: without an error. The process ends. */
  | { kind: 'closed'; problem: string | null }

/** Time between two signs of life, milliseconds. */
export const beatMs = 1_000
/** Most lines that a driver may log in a second. */
export const linesPerSecond = 100
/** Longest line that a driver may log, characters. */
export const maxLine = 8_000
