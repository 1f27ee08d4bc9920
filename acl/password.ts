import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** A password as the store has it. */
interface Hashed {
  salt: string
  hash: string
}

/** A new random password. It is shown once, and kept only as a hash. */
export function createPassword(): Hashed & { password: string } {
  const password = randomBytes(32).toString('base64url')
  const salt = randomBytes(16).toString('base64url')
  return { password, salt, hash: digest(salt, password).toString('base64url') }
}

/** An unknown username takes as long as a wrong password: the time must not reveal which usernames exist. */
export function passwordMatches(password: Buffer | string, stored: Hashed = nobody): boolean {
  const expected = Buffer.from(stored.hash, 'base64url')
  const actual = digest(stored.salt, password)
  return expected.length === actual.length && timingSafeEqual(expected, actual)
}

/** With 256 random bits in the password a slow hash would add nothing (design.md §5). */
function digest(salt: string, password: Buffer | string): Buffer {
  return createHash('sha256').update(salt).update(password).digest()
}

/** Compared in place of the credential of an unknown username. Its hash is random, so no password fits. */
const nobody: Hashed = {
  salt: randomBytes(16).toString('base64url'),
  hash: randomBytes(32).toString('base64url'),
}
