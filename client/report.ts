import { isRecord } from './kind.ts'
import type { Remark } from './refusal.ts'

/** What the hub says about one event (docs/publishers.md, "Feedback"). */
export interface Report {
  outcome: 'published' | 'blocked' | 'invalid' | 'failed'
  /** Numbers of services by outcome. */
  statuses: { published: number; blocked: number; failed: number }
  event: string | null
  /** The id that the hub gave the event. An event that is repeated unchanged within an hour keeps it. */
  id: string | null
  playlistItemId: string | null
  name: string | null
  eventTime: string | null
  services: string[]
  errors: Remark[]
  /** Accepted, but probably not what was meant. Absent when there is nothing to say. */
  warnings?: Remark[]
  receivedAt: string
  /** The MQTT client that published. Null: over HTTPS. Absent: the hub is older than this field. */
  clientId?: string | null
  /** First 16 hexadecimal digits of the SHA-256 of the payload. */
  payloadHash: string
  dryRun?: true
  trace: null
}

/**
 * Returns a function that reads reports for the client with this id. Undefined: it is none, lacks what it is matched and
 * judged by, or is about an event of somebody else.
 */
export function reportReader(clientId: string): (payload: Uint8Array) => Report | undefined {
  const own = JSON.stringify(clientId)
  return (payload) => {
    const text = decoder.decode(payload)
    // Everybody sees the reports of the whole institution. Most are of others, and looking is cheaper than parsing.
    if (!text.includes(own) && text.includes('"clientId":')) return undefined
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return undefined
    }
    if (!isReport(value)) return undefined
    return value.clientId === undefined || value.clientId === clientId ? value : undefined
  }
}

const decoder = new TextDecoder()
const outcomes: readonly unknown[] = ['published', 'blocked', 'invalid', 'failed']

function isReport(value: unknown): value is Report {
  if (!isRecord(value)) return false
  const { outcome, payloadHash, errors, warnings = [] } = value
  return (
    outcomes.includes(outcome) &&
    typeof payloadHash === 'string' &&
    areRemarks(errors) &&
    areRemarks(warnings)
  )
}

function areRemarks(value: unknown): value is Remark[] {
  return Array.isArray(value) && value.every(isRemark)
}

/** All three are texts: what cannot become one would end the process where it is shown. */
function isRemark(value: unknown): boolean {
  return (
    isRecord(value) && [value.path, value.message, value.errorCode].every((part) => typeof part === 'string')
  )
}
