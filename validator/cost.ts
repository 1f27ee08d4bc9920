/** Bytes for one token of the publish rate. */
const bytesPerToken = 64 * 1024

/**
 * What an event costs of the publish rate: one token, or one for each 64 KiB of its payload times its livestreams. It
 * is read as a whole, and stored for and sent to each of them. What is refused reaches none, and costs its reading.
 */
export function costOf(payloadBytes: number, livestreams: number): number {
  return Math.max(1, (payloadBytes * Math.max(1, livestreams)) / bytesPerToken)
}
