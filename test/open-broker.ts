import { parseArgs } from 'node:util'
import { startPlainBroker } from './plain-broker.ts'

/*
 * `broker/` alone on plain loopback TCP, open to everybody on any topic, so that public MQTT conformance
 * suites can be pointed at it: `npx tsx test/open-broker.ts --port 1883`
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '1883' },
    log: { type: 'string' },
    // Paho's suite wants one filter to be refused: `--deny test/nosubscribe`
    deny: { type: 'string', default: '' },
    // For suites that restart the broker: where it keeps what it stores.
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
  limits: { maxPacketBytes: largestPacket, maxConnectBytes: largestPacket },
  ...(values.log && { logLevel: values.log }),
  ...(values.directory && { directory: values.directory }),
})
process.stdout.write(`listening on 127.0.0.1:${broker.port}\n`)
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => void broker.close().then(() => process.exit(0)))
}
