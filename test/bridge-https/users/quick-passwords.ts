import { createPasswords } from '../../../bridge-https/users/passwords.ts'

/** Passwords that are hashed in no time, for tests of something else: every user needs two hashes, of 0.2 s each. */
export function quickPasswords() {
  return createPasswords({ work: { logN: 8, r: 1, p: 1 } })
}
