/** The library as Node loads it: all that browsers have, and what needs files. */
export * from './browser.ts'
export { connectPublisher, createHttpsPublisher } from './publisher-node.ts'
export { verifyPush } from './push-node.ts'
export { connectSubscriber } from './subscriber-node.ts'
export {
  type Push,
  PushRefused,
  type PushRequest,
  pushRefusals,
  type VerifyPush,
  type VerifyPushOptions,
} from './verify-push.ts'
