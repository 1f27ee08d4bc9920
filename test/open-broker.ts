import { parseArgs } from 'node:util'
import { startPlainBroker } from './plain-broker.ts'

/*
 * Starts `broker/` alone on plain loopback TCP, open to everybody, for public MQTT conformance suites: `npx tsx
 * test/open-broker.ts --port 1883`
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '1883' },
    log: { type: 'string' },
    // Paho's suite expects that the broker refuses one filter: `--deny test/nosubscribe`
    deny: { type: 'string', default: '' },
    // The directory of the store, for suites that restart the broker.
    directory: { type: 'string' },
  },
})

const largestPacket = 268_435_461
const broker = await startPlainBroker({
  port: Number(values.port),
  access: {
    maySubscribe: (_principal, filter) =>
      filter === values.deny ? { allowed: false, reason: 'denied by --deny' } : { allowed: true },
  },
  limits: { maxPacket: largestPacket, maxConnectPacket: largestPacket },
  ...(values.log && { logLevel: values.log }),
  ...(values.directory && { directory: values.directory }),
})
process.stdout.write(`listening on 127.0.0.1:${broker.port}\n`)
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => void broker.close().then(() => process.exit(0)))
}
