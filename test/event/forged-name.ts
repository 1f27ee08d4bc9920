import { crc64 } from '../../event/crc64.ts'

/** Letters that are chosen: more than the 64 bits of a checksum, so that there is a choice for each. */
const length = 96

/**
 * An external id that begins with `prefix` and has the checksum of `other`. A change of one letter changes the checksum
 * by the same bits whatever the others are, so that the letters follow from linear equations.
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
  /** Of the checksum. */
  bits: bigint
  /** The letters that change these bits. */
  chosen: bigint
}

function reduce(equation: Equation, basis: readonly Equation[]): Equation {
  return basis.reduce(
    (left, { bits, chosen }) =>
      (left.bits ^ bits) < left.bits ? { bits: left.bits ^ bits, chosen: left.chosen ^ chosen } : left,
    equation,
  )
}
