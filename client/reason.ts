/** Why there is no connection, as its error says. */
export function messageOf(problem: Error | undefined): string {
  return problem?.message || 'the connection was closed'
}

/** The same in Node.js, with what helps where that is known. */
export function reasonOf(problem: Error | undefined): string {
  // `fetch` says in `cause` what has failed.
  const message = messageOf(problem?.cause instanceof Error ? problem.cause : problem)
  const [, hint] = hints.find(([pattern]) => pattern.test(message)) ?? []
  return hint ? `${message}: ${hint}` : message
}

/** What Node.js or mqtt.js says, and what helps. */
const hints = [
  [/self.signed certificate|unable to (?:get|verify)/, 'set ca to the CA of the hub'],
  // The beginning of `HTTP/1.1 400`, read as MQTT.
  [/Invalid header flag bits.*puback/, 'this is no MQTT port, it answers in HTTP'],
] as const
