/** Puts a small JSON header and the bytes that it describes into one stored value. */
export function encodeValue(header: object, ...bytes: readonly (Buffer | undefined)[]): Buffer {
  const json = JSON.stringify(header)
  let end = Buffer.byteLength(json) + 1
  const record = Buffer.allocUnsafe(bytes.reduce((sum, part) => sum + (part?.length ?? 0), end))
  record.write(json)
  newline.copy(record, end - 1)
  for (const part of bytes) end += part?.copy(record, end) ?? 0
  return record
}

/** Reads a value that `encodeValue` made. The JSON contains no line break, so it ends at the first line break. */
export function decodeValue<Header>(value: Buffer): { header: Header; payload: Buffer } {
  const end = value.indexOf(newline)
  return { header: JSON.parse(value.toString('utf8', 0, end)), payload: value.subarray(end + 1) }
}

const newline = Buffer.from('\n')
