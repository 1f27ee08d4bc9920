/**
 * Every error code of this package that is not a decision of the hub about an event (that is `EventRefused`), with what
 * it means. The codes are stable. The Python library has the same.
 */
export const errorCodes = {
  'option.invalid': 'an option is missing or wrong: the message names it',
  'event.unreadable': 'the event is no object that JSON can carry',
  'login.refused': 'user name, password or way to log in refused: only a person can help',
  'feedback.denied': 'the credential may not read the feedback of this institution',
  'connection.lost': 'there is no connection, the client tries again by itself',
  'hub.unavailable': 'the hub did not take the event, and the client gave up',
  'event.refused': 'the hub refused an event that nobody waits for',
  superseded: 'not worth sending any more: too old, expired, or a newer one is published',
  full: 'too many events wait for the hub; this one was not taken in',
  closed: 'the client was closed before the hub had answered',
  'outbox.locked': 'another process uses this outbox',
  'outbox.unusable': 'the outbox cannot be read or written, or is no outbox',
  'outbox.damaged': 'lines of the outbox were unreadable, and left out',
  'browser.unsupported': 'a browser has no files: leave out what needs them',
  'livestreams.full': 'more livestreams than are kept; those that were silent longest are left out',
  'filter.denied': 'a filter is not permitted; the others stay',
} as const

export type ErrorCode = keyof typeof errorCodes

/** An error with a stable code. `message` says what happened in this case. */
export class ClientError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string = errorCodes[code], options?: ErrorOptions) {
    super(message, options)
    this.name = 'ClientError'
    this.code = code
  }
}
