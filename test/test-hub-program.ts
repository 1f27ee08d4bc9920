import { setImmediate } from 'node:timers/promises'
import { createTestHub } from '../testing.ts'

/*
 * Starts two test hubs at the same time, uses and closes them, and prints what that left in the process. The process
 * then ends by itself, unless something keeps it.
 */

// Each of these streams is a resource from its first use on.
if (!process.stdout || !process.stderr) throw new Error('no output')
const before = await settled()
const hubs = await Promise.all([createTestHub(), createTestHub()])
await Promise.all(hubs.map((hub) => Promise.all([hub.addPublisher(), hub.addSubscriber()])))
await Promise.all(hubs.map((hub) => Promise.all([hub.close(), hub.close()])))
process.stdout.write(JSON.stringify({ before, after: await settled() }))

/** Requests, such as the removal of a directory, count as resources until their end is reported. */
async function settled() {
  while (process.getActiveResourcesInfo().some((name) => /Req/.test(name))) await setImmediate()
  return state()
}

function state() {
  return {
    env: { ...process.env },
    directory: process.cwd(),
    listeners: process.eventNames().map((name) => `${String(name)} ${process.listenerCount(name)}`),
    resources: process.getActiveResourcesInfo(),
  }
}
