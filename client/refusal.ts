/** A mistake in an event, or something that a publisher should know about it (docs/publishers.md, "Feedback"). */
export interface Remark {
  /** Place in the event, for example `.services.0.publisherId`. */
  path: string
  message: string
  /** Stable; messages may be reworded. */
  errorCode: string
}

/** The hub has decided against an event: to send it again unchanged would not help. */
export class EventRefused extends Error {
  readonly outcome: string
  readonly errors: readonly Remark[]

  constructor(outcome: string, errors: readonly Remark[]) {
    super(`${outcome}: ${errors.map(({ path, message }) => `${path} ${message}`).join('; ')}`)
    this.name = 'EventRefused'
    this.outcome = outcome
    this.errors = errors
  }
}
