import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { createHashingQueue, type HashingAsker } from './hashing-queue.ts'

export type { HashingAsker }
export type Passwords = ReturnType<typeof createPasswords>

/** Shortest and longest password a user may choose, characters. */
export const passwordLength = { min: 10, max: 1024 }

/** Work factors of new hashes: about 0.2 s and 32 MiB each. Old hashes keep the factors stored in them. */
const defaultWork = { logN: 15, r: 8, p: 3 }
/** Hashing gets one thread of the pool, which also serves the disk and DNS. */
const concurrency = 1
/** Maximum number of clients that wait in each rank (`hashing-queue.ts`). More could not be answered in time. */
const defaultMaxWaiting = 30
/** The asker if the caller names none: ranked with the best known clients. */
const inHouse: HashingAsker = { from: '', familiarity: 'address' }

/** Thrown when too many passwords wait already. */
export class TooBusy extends Error {
  override name = 'TooBusy'
}

/** Hashes and checks passwords chosen by people, with scrypt and one at a time (design.md §5). */
export function createPasswords({ maxWaiting = defaultMaxWaiting, work = defaultWork } = {}) {
  const queue = createHashingQueue(maxWaiting)
  /**
   * `verify` uses this hash if there is no stored hash. The check then takes as long as any other. So the time does not
   * reveal which accounts exist. No password fits this hash.
   */
  const dummyHash = { salt: randomBytes(16), key: randomBytes(keyBytes), factors: work }
  let running = 0

  return {
    /** The salted hash of a password, with its work factors. */
    async hash(password: string, asker = inHouse): Promise<string> {
      const salt = randomBytes(16)
      const key = await inQueue(asker, () => derive(password, salt, work))
      return [
        'scrypt',
        work.logN,
        work.r,
        work.p,
        salt.toString('base64url'),
        key.toString('base64url'),
      ].join('$')
    },

    /** Whether a password fits. Without a hash the answer is no, after the same time. */
    async verify(password: string, stored: string | undefined, asker = inHouse): Promise<boolean> {
      const { salt, key, factors } = (stored === undefined ? undefined : parse(stored)) ?? dummyHash
      const actual = await inQueue(asker, () => derive(password, salt, factors))
      return stored !== undefined && actual.length === key.length && timingSafeEqual(actual, key)
    },
  }

  async function inQueue<T>(asker: HashingAsker, task: () => Promise<T>): Promise<T> {
    if (running >= concurrency) await placeFor(asker)
    else running++
    try {
      return await task()
    } finally {
      const next = queue.next()
      if (next) next.start()
      else running--
    }
  }

  function placeFor(asker: HashingAsker): Promise<void> {
    return new Promise((resolve, reject) => {
      const sendAway = () => reject(new TooBusy('too many passwords wait to be checked'))
      if (!queue.add(asker, { start: resolve, sendAway })) sendAway()
    })
  }
}

type Factors = typeof defaultWork

function derive(password: string, salt: Buffer, { logN, r, p }: Factors): Promise<Buffer> {
  // Systems encode the same typed characters differently. In normal form they are the same password.
  const text = password.normalize('NFKC')
  const options = { N: 2 ** logN, r, p, maxmem: 256 * 2 ** logN * r }
  return new Promise((resolve, reject) => {
    scrypt(text, salt, keyBytes, options, (error, key) => (error ? reject(error) : resolve(key)))
  })
}

const keyBytes = 32

function parse(stored: string): { salt: Buffer; key: Buffer; factors: Factors } | undefined {
  const [scheme, logN, r, p, salt = '', key = ''] = stored.split('$')
  if (scheme !== 'scrypt') return undefined
  return {
    salt: Buffer.from(salt, 'base64url'),
    key: Buffer.from(key, 'base64url'),
    factors: { logN: Number(logN), r: Number(r), p: Number(p) },
  }
}

/** Whether two secrets are the same. How long it takes tells nothing about either. */
export function isSameSecret(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(one), digest(other))
}

/** A secret for a link, of 256 random bits. */
export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

/** The hash of such a secret: a slow one would add nothing (design.md §5). */
export function hashOfToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url')
}
