/**
 * How long a test waits for an event before it fails. Only a test that fails waits that long, so a busy machine may
 * take its time.
 */
export const patienceMs = 60_000
