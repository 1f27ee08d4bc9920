/** Longest delay of a target, milliseconds: audio is 15 to 120 s behind its metadata. */
export const maxDelayMs = 300_000
