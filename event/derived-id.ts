import { livestreamKinds, type ServiceType } from './format.ts'

/** The Core ID of a publisher that is known by its external id only (service.md §2.3). */
export function derivePublisherId(externalId: string): string {
  return `urn:org:publisher:${crc64(externalId)}`
}

/** The id of a livestream that is known by its external id only (design.md §5). */
export function deriveLivestreamId(serviceType: ServiceType, externalId: string): string {
  return `urn:org:${livestreamKinds[serviceType]}:${crc64(externalId)}`
}

/**
 * CRC-64/ECMA-182 of the UTF-8 bytes of `text`, as 16 lower-case hexadecimal digits.
 *
 * In practice, a Core ID contains this checksum of the external id (design.md §5).
 */
export function crc64(text: string): string {
  const known = checksums.get(text)
  if (known !== undefined) return known
  const checksum = compute(text)
  if (text.length > maxRemembered) return checksum
  if (checksums.size >= maxChecksums) checksums.clear()
  checksums.set(text, checksum)
  return checksum
}

/** Results of `crc64`. The hub needs that of an external id six times for one service. */
const checksums = new Map<string, string>()
const maxChecksums = 1_000
/** Longest text whose result is kept, characters: over HTTPS, a publisher id may have 400 kB. */
const maxRemembered = 500

function compute(text: string): string {
  let high = 0
  let low = 0
  for (const byte of Buffer.from(text, 'utf8')) {
    const index = (high >>> 24) ^ byte
    high = ((high << 8) | (low >>> 24)) ^ (tableHigh[index] ?? 0)
    low = (low << 8) ^ (tableLow[index] ?? 0)
  }
  return hex(high) + hex(low)
}

// Two 32-bit halves: with a BigInt, every step would allocate an object.
const polynomialHigh = 0x42f0e1eb
const polynomialLow = 0xa9ea3693
const tableHigh = new Int32Array(256)
const tableLow = new Int32Array(256)

for (let byte = 0; byte < 256; byte++) {
  let high = byte << 24
  let low = 0
  for (let bit = 0; bit < 8; bit++) {
    const carry = high < 0
    high = (high << 1) | (low >>> 31)
    low = low << 1
    if (carry) {
      high ^= polynomialHigh
      low ^= polynomialLow
    }
  }
  tableHigh[byte] = high
  tableLow[byte] = low
}

function hex(half: number): string {
  return (half >>> 0).toString(16).padStart(8, '0')
}
