import pino from 'pino'
import t from 'tap'
import type { MqttConnection } from '../../../broker/connection/connection.ts'
import { createSending, unacknowledgedMs } from '../../../broker/fanout/sending.ts'
import { createOutgoing } from '../../../broker/session/outgoing-qos2.ts'
import { createSession, packetIdOf, type Session } from '../../../broker/session/session.ts'
import { createMetrics } from '../../../telemetry/metrics.ts'
import { openStore } from '../../open-store.ts'

/* A message whose packet identifier is in flight waits. Who leaves that unacknowledged for long is cut off. */

const principal = { role: 'subscriber', username: 'u', filters: ['#'] } as const
const of = { clientId: 'c', clean: false, permission: '', principal, createdAt: 1 }
const owed = (position: number) => ({ position, qos: 1, retain: false, dup: false }) as const
const message = { topic: 'a', payload: Buffer.from('a'), queue: { keep: 'every' } } as const
const id = packetIdOf(1)

const changes: Record<string, [change: (session: Session) => void, cuts: number]> = {
  'leaves it unacknowledged': [() => {}, 1],
  'has acknowledged it': [({ inFlight }) => inFlight.delete(id), 0],
  'has acknowledged it, and got another since': [({ inFlight }) => inFlight.set(id, owed(1)), 0],
  'has come back since': [(session) => void Object.assign(session, { connection: connect([]) }), 0],
}

for (const [what, [change, count]] of Object.entries(changes)) {
  t.test(`a client that ${what} is ${count > 0 ? '' : 'not '}cut off`, async (t) => {
    const looks: (() => void)[] = []
    const { setTimeout } = globalThis
    t.teardown(() => Object.assign(globalThis, { setTimeout }))
    const caught = (look: () => void, ms?: number) => {
      if (ms === unacknowledgedMs) looks.push(look)
      return setTimeout(look, ms)
    }
    Object.assign(globalThis, { setTimeout: caught })
    const sending = createSending({
      outgoing: createOutgoing(await openStore(t)),
      retained: { current: () => undefined },
      maxInFlight: 10,
      log: pino({ level: 'silent' }),
      metrics: createMetrics(),
    })
    const cuts: string[] = []
    const connection = connect(cuts)
    const session = createSession({ ...of, connection })
    session.inFlight.set(id, owed(1))
    const again = owed(1 + 65_535)
    t.equal(packetIdOf(again.position), id)
    t.equal(await sending.send(session, connection, message, again), false)
    change(session)
    t.equal(looks.length, 1)
    for (const look of looks) look()
    t.equal(cuts.length, count)
  })
}

function connect(cuts: string[]): MqttConnection {
  return {
    isOpen: true,
    cut: (reason: string) => void cuts.push(reason),
  } as Partial<MqttConnection> as MqttConnection
}
