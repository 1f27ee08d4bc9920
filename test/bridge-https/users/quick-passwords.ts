import { createPasswords } from '../../../bridge-https/users/passwords.ts'

/** Fast password hashes, for tests of other things. With the real cost, each user takes two hashes of 0.2 s. */
export function quickPasswords() {
  return createPasswords({ work: { logN: 8, r: 1, p: 1 } })
}
