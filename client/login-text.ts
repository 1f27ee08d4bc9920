/** MQTT 3.1.1 §1.5.3. mqtt.js throws at a longer one, and its connection fails later, without a listener. */
const maxBytes = 65_535

/** What is wrong with a user name or password as MQTT carries them. Undefined: nothing. */
export function loginTextProblem(value: unknown): string | undefined {
  if (typeof value !== 'string') return 'must be a text'
  return new TextEncoder().encode(value).length > maxBytes ? 'must have at most 65,535 bytes' : undefined
}
