/** A small JSON header and the bytes it speaks of, in one stored value. */
export function encodeRecord(header: object, ...bytes: readonly (Buffer | undefined)[]): Buffer {
  const known = bytes.filter((part) => part !== undefined)
  return Buffer.concat([Buffer.from(JSON.stringify(header)), newline, ...known])
}

/** Reads what `encodeRecord` wrote; JSON without line breaks ends at the first one. */
export function decodeRecord<Header>(value: Buffer): { header: Header; payload: Buffer } {
  const end = value.indexOf(newline)
  return { header: JSON.parse(value.toString('utf8', 0, end)), payload: value.subarray(end + 1) }
}

const newline = Buffer.from('\n')
