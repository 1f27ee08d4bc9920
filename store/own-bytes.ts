/**
 * Copies bytes that stay in memory for long. The copy shares its memory with nothing. `Buffer.from` puts small bytes
 * together into pieces of 64 KiB, and the client of Redis hands out parts of what it has received: what stays would keep
 * all of its piece.
 */
export function ownBytes(content: Buffer | string): Buffer {
  const own = Buffer.allocUnsafeSlow(Buffer.byteLength(content))
  if (typeof content === 'string') own.write(content)
  else content.copy(own)
  return own
}
