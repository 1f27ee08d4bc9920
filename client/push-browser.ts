import { noCa } from './no-ca.ts'
import { createVerifyPush, type VerifyPush } from './verify-push.ts'

/** As in Node.js, for workers and other platforms with WebCrypto and `fetch`. They take no `ca`. */
export const verifyPush: VerifyPush = createVerifyPush(noCa)
