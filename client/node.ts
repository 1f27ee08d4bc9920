/** The library as Node loads it: all that browsers have, and what needs files. */
export * from './browser.ts'
export { connectPublisher, createHttpsPublisher } from './publisher-node.ts'
export { verifyPush } from './push-node.ts'
export { connectSubscriber } from './subscriber-node.ts'
