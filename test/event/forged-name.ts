import { crc64 } from '../../event/derived-id.ts'

/**
 * Number of letters that can be chosen. It is larger than the 64 bits of a checksum, so that every checksum can be
 * reached.
 */
const length = 96

/**
 * Makes an external id that begins with `prefix` and has the checksum of `other`. CRC is linear: a changed letter
 * always flips the same bits.
 */
export function forgedName(prefix: string, other: string): string {
  const checksum = (name: string) => BigInt(`0x${crc64(name)}`)
  const named = (chosen: bigint) =>
    prefix + Array.from({ length }, (_, index) => ((chosen >> BigInt(index)) & 1n ? 'c' : 'a')).join('')
  const plain = checksum(named(0n))
  const basis: Equation[] = []
  for (let index = 0; index < length; index++) {
    const chosen = 1n << BigInt(index)
    const reduced = reduce({ bits: checksum(named(chosen)) ^ plain, chosen }, basis)
    if (reduced.bits === 0n) continue
    basis.push(reduced)
    basis.sort((a, b) => (a.bits < b.bits ? 1 : -1))
  }
  return named(reduce({ bits: plain ^ checksum(other), chosen: 0n }, basis).chosen)
}

interface Equation {
  /** The flipped bits of the checksum. */
  bits: bigint
  /** The letters whose change flips these bits, as a bit mask. */
  chosen: bigint
}

function reduce(equation: Equation, basis: readonly Equation[]): Equation {
  return basis.reduce(
    (left, { bits, chosen }) =>
      (left.bits ^ bits) < left.bits ? { bits: left.bits ^ bits, chosen: left.chosen ^ chosen } : left,
    equation,
  )
}
