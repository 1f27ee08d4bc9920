/**
 * How long a test waits for an event before it fails, milliseconds. Long enough for a busy machine: only a test that
 * fails waits that long.
 */
export const patienceMs = 60_000
