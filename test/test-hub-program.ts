import { setImmediate } from 'node:timers/promises'
import { createTestHub } from '../testing.ts'

/*
 * Starts two test hubs at the same time, uses and closes them, and prints what that left in the process. The process
 * then ends by itself, unless something keeps it.
 */

const before = state()
const hubs = await Promise.all([createTestHub(), createTestHub()])
await Promise.all(hubs.map((hub) => Promise.all([hub.addPublisher(), hub.addSubscriber()])))
await Promise.all(hubs.map((hub) => Promise.all([hub.close(), hub.close()])))
// The removal of the directory still counts as a resource while its end is reported.
await setImmediate()
process.stdout.write(JSON.stringify({ before, after: state() }))

function state() {
  return {
    env: { ...process.env },
    directory: process.cwd(),
    listeners: process.eventNames().map((name) => `${String(name)} ${process.listenerCount(name)}`),
    resources: process.getActiveResourcesInfo(),
  }
}
