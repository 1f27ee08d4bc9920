import { createPasswords } from '../../../bridge-https/users/passwords.ts'

/** Fast password hashes, for tests of other things. Real ones take 0.2 s each. */
export function quickPasswords() {
  return createPasswords({ work: { logN: 8, r: 1, p: 1 } })
}
