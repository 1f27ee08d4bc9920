import { httpTrusting } from './http-node.ts'
import { readCa } from './read-ca.ts'
import { createVerifyPush, type VerifyPush } from './verify-push.ts'

/**
 * Checks that a push is of the hub, and of one of these subscriptions. Resolves with its event. Rejects with
 * `PushRefused`, which says with which `status` to answer, and with `ClientError` (`option.invalid`) for a wrong option.
 */
export const verifyPush: VerifyPush = createVerifyPush({ readCa, httpTrusting })
