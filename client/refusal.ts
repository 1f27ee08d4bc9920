/** A mistake in an event, or something that a publisher should know about it (docs/publishers.md, "Feedback"). */
export interface Remark {
  /** Place in the event, for example `.services.0.publisherId`. */
  path: string
  message: string
  /** Stable; messages may be reworded. */
  errorCode: string
}

/** A report may have a hundred errors of any length. A line of a log shows so many, and so many characters of each. */
const shown = { errors: 5, characters: 300 }

/** The hub has decided against an event: to send it again unchanged would not help. `errors` has all reasons. */
export class EventRefused extends Error {
  readonly outcome: string
  readonly errors: readonly Remark[]

  constructor(outcome: string, errors: readonly Remark[]) {
    const reasons = errors
      .slice(0, shown.errors)
      .map(({ path, message }) => `${path} ${message}`.slice(0, shown.characters))
    if (errors.length > shown.errors) reasons.push(`and ${errors.length - shown.errors} more`)
    super(`${outcome}: ${reasons.join('; ')}`)
    this.name = 'EventRefused'
    this.outcome = outcome
    this.errors = errors
  }
}
