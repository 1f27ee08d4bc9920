import { randomUUID } from 'node:crypto'
import type { Change } from '../../store/store.ts'

export const bodyPrefix = 'retained-body/'

/**
 * Payloads that several retained values have in common: an event for 200 livestreams is stored once, not 200 times.
 * Values refer to their body by its id, in the commit that brings it; later none comes to refer to it, so that a body
 * that no value refers to can go. Where it goes two sweeps are between, because a value that was replaced comes back
 * when its successor could not be stored.
 */
export function createRetainedBodies() {
  const bodies = new Map<string, Body>()
  /** Of the messages that are on their way. */
  const idsByPayload = new WeakMap<Buffer, string>()

  return {
    /** A body as it is stored. With a copy, or the whole chunk read from the store would stay in memory. */
    take(key: string, payload: Buffer): void {
      const id = key.slice(bodyPrefix.length)
      if (!bodies.has(id)) add(id, Buffer.from(payload))
    },

    /** The changes that store what several of these payloads have in common, for `idOf` from now on. */
    share(payloads: readonly Buffer[]): Change[] {
      const seen = new Set<Buffer>()
      const shared = new Set<Buffer>()
      for (const payload of payloads) (seen.has(payload) ? shared : seen).add(payload)
      return [...shared].map((payload) => {
        const id = randomUUID()
        add(id, payload)
        idsByPayload.set(payload, id)
        return { put: bodyPrefix + id, value: payload }
      })
    },

    idOf: (payload: Buffer): string | undefined => idsByPayload.get(payload),
    payloadOf: (id: string): Buffer | undefined => bodies.get(id)?.payload,

    /** A value refers to it, or does so no more. */
    hold(id: string | undefined): void {
      const body = bodies.get(id ?? '')
      if (!body) return
      body.holders++
      body.isExpendable = false
    },
    release(id: string | undefined): void {
      const body = bodies.get(id ?? '')
      if (body) body.holders--
    },

    /** Another node has removed it. */
    removed(key: string): void {
      bodies.delete(key.slice(bodyPrefix.length))
    },

    /**
     * Bodies without values: those that had none at the last sweep either go. To be called before the commit of a
     * sweep, and the function it returns behind it: what was being stored before is decided then.
     */
    sweep(): { changes: Change[]; stored: () => void } {
      const unused = [...bodies].filter(([, { holders }]) => holders === 0)
      const expendable = unused.filter(([, { isExpendable }]) => isExpendable)
      return {
        changes: expendable.map(([id]) => ({ del: bodyPrefix + id })),
        stored() {
          for (const [id] of expendable) bodies.delete(id)
          for (const [, body] of unused) body.isExpendable = body.holders === 0
        },
      }
    },
  }

  function add(id: string, payload: Buffer): void {
    bodies.set(id, { payload, holders: 0, isExpendable: false })
  }
}

interface Body {
  payload: Buffer
  /** How many values refer to it. */
  holders: number
  /** None did at the last sweep. */
  isExpendable: boolean
}
