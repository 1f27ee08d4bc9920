import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** A password as it is stored. */
interface Hashed {
  salt: string
  hash: string
}

/** Makes a random password. The caller shows it once, and stores only its hash. */
export function createPassword(): Hashed & { password: string } {
  const password = randomBytes(32).toString('base64url')
  const salt = randomBytes(16).toString('base64url')
  return { password, salt, hash: digest(salt, password).toString('base64url') }
}

/** Whether a password is right. For an unknown username (`stored` undefined), the check takes equally long. */
export function passwordMatches(password: Buffer | string, stored: Hashed = nobody): boolean {
  const expected = Buffer.from(stored.hash, 'base64url')
  const actual = digest(stored.salt, password)
  return expected.length === actual.length && timingSafeEqual(expected, actual)
}

/** A fast hash is enough, because a password of 256 random bits cannot be guessed (design.md §5). */
function digest(salt: string, password: Buffer | string): Buffer {
  return createHash('sha256').update(salt).update(password).digest()
}

/** Stands in for an unknown username. The hash is random: no password matches. */
const nobody: Hashed = {
  salt: randomBytes(16).toString('base64url'),
  hash: randomBytes(32).toString('base64url'),
}
