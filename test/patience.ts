/**
 * How long a test waits for an event before it fails, milliseconds. Only a test that fails waits that long. So the time
 * can be long enough for a busy machine.
 */
export const patienceMs = 60_000
