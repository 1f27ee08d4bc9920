import t from 'tap'
import type { CommandOf } from '../../../cli/command.ts'
import { commands } from '../../../cli/commands.ts'
import { createPrinter } from '../../../cli/print.ts'
import { type OperationName, operations } from '../../../operations/operations.ts'

t.test('a rotation says from when the key signs, or which receivers may refuse it', async (t) => {
  const printer = createPrinter({ isTTY: false })
  const rotate = commandOf('keys.rotate')
  const signsFrom = '2026-03-01T12:10:00.000Z'
  const key = { createdAt: signsFrom, signsFrom, replacedAt: null, state: 'waiting' as const }
  const waiting = { ...key, kid: 'k1', dropOld: false, mayRefuse: [] }
  t.match(rotate?.print(waiting, printer), /it signs from 2026-03-01T\S+ on: k1\.$/)
  t.equal(rotate?.warning?.(waiting), undefined)
  const receiver = { name: 'sub-1', target: 'https://hook.example/', contact: 'a@b.example' }
  const atOnce = { ...key, kid: 'k2', dropOld: true, mayRefuse: [receiver] }
  const text = rotate?.print(atOnce, printer)
  t.match(text, /^Signing from now on with k2\.$/m)
  t.match(text, /^sub-1 +https:\/\/hook\.example\/ +a@b\.example$/m)
  t.match(rotate?.warning?.(atOnce), /may refuse .* 204 .*hubctl queues replay/)
})

t.test('the life cycle is two tables: where the tracks stand, and who asks', async (t) => {
  const printer = createPrinter({ isTTY: false })
  const status = commandOf('lifecycle.status')
  const [unannounced] = operations['lifecycle.status'].resultExample
  if (!unannounced) throw new Error('no example')
  const tracks = [
    {
      ...unannounced,
      track: 'push' as const,
      state: 'live' as const,
      requests: 3,
      traffic: [{ day: '2026-03-01', route: 'GET /topics', requests: 3 }],
    },
    { ...unannounced, track: 'publish' as const, state: 'gone' as const, requests: 0, traffic: [] },
  ]
  const text = status?.print(tracks, printer) ?? ''
  t.match(text, /^push +live .* 3$/m)
  t.match(text, /^2026-03-01 +GET \/topics +3$/m)
})

function commandOf<Name extends OperationName>(name: Name) {
  return commands.find(({ operation }) => operation === name) as CommandOf<Name> | undefined
}
