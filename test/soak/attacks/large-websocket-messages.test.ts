import t from 'tap'
import { besideAttack } from './beside.ts'

t.test('a WebSocket message that is larger than a CONNECT may be is not waited for', async (t) => {
  const { seen } = await besideAttack(t, 'large-websocket-messages')
  t.ok((seen.answers['101'] ?? 0) > 0, 'WebSockets were opened')
  t.ok(seen.cut > 0, 'and ended by the node before its patience with a silent client is over')
})
