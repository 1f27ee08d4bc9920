import t from 'tap'
import { eventKinds } from '../../event/kind.ts'
import { radioTopic } from '../../event/topic.ts'
import type { RetainedValue } from '../../journal/retained-value.ts'
import { createState } from '../../on-air/state.ts'
import { viewOf } from '../../on-air/view.ts'

const playing = eventKinds.find(({ isNow }) => isNow)
const all = viewOf(['radio/#'])

/** `made`: how often what a livestream shows was looked up. */
function openState(mostBytes?: number) {
  const values = new Map<string, RetainedValue[]>()
  let made = 0
  const topicOf = (id: string) => (playing ? radioTopic(id, playing) : '')
  const of = (id: string) => values.get(topicOf(id)) ?? []
  const state = createState({
    retained: { storedValues: (topic) => values.get(topic) ?? [] },
    parts: { ahead: async () => [] },
    now: {
      async events(id, _view, moment) {
        made++
        return of(id).filter(({ expires = Infinity }) => expires > moment.now)
      },
    },
    ...(mostBytes !== undefined && { mostBytes }),
  })
  return {
    retain(id: string, position: number, more: Partial<RetainedValue> = {}): void {
      const payload = Buffer.from(JSON.stringify({ position }))
      const value = {
        topic: topicOf(id),
        slot: '',
        time: 0,
        qos: 1,
        payload,
        position,
        at: 0,
        ...more,
      } as const
      values.set(topicOf(id), [{ queue: { keep: 'latest' }, ...value }])
    },
    read: async (id: string, position: number, now: number, view = all) =>
      /"position":(\d+)/.exec((await state.of(id, view, { position, now })).toString())?.[1],
    made: () => made,
    bytes: (id: string, position: number, now: number) => state.of(id, all, { position, now }),
  }
}

t.test('a text that is kept keeps no other bytes in memory', async (t) => {
  const { retain, bytes } = openState()
  retain('a', 1)
  const text = await bytes('a', 9, 10)
  t.ok(text.length > 0)
  t.equal(text.buffer.byteLength, text.length)
})

t.test('what a livestream shows is made once, until it changes', async (t) => {
  const { retain, read, made } = openState()
  t.equal(await read('a', 9, 10), undefined)
  retain('a', 1)
  t.equal(await read('a', 9, 10), '1')
  t.equal(await read('a', 9, 20), '1')
  t.equal(made(), 1)
  retain('a', 2)
  t.equal(await read('a', 9, 30), '2')
  t.equal(made(), 2)
})

t.test('what is over is not shown any more', async (t) => {
  const { retain, read } = openState()
  retain('a', 1, { expires: 100 })
  t.equal(await read('a', 9, 99), '1')
  t.equal(await read('a', 9, 100), undefined)
  t.equal(await read('a', 9, 99), '1', 'by a clock that was set back')
})

t.test('what is ahead, behind the moment of the reader, or seen in part is made for each', async (t) => {
  const { retain, read, made } = openState()
  retain('a', 5, { time: 50 })
  await read('a', 9, 60)
  await read('a', 9, 40)
  await read('a', 4, 60)
  await read('a', 9, 60, viewOf(['radio/a/track/#']))
  t.equal(made(), 4)
  await read('a', 9, 60)
  t.equal(made(), 4)
})

t.test('the texts that are kept are bounded', async (t) => {
  const { retain, read, made } = openState(500)
  for (let nth = 0; nth < 50; nth++) {
    retain(`${nth}`, 1)
    await read(`${nth}`, 9, 10)
  }
  await read('49', 9, 10)
  t.equal(made(), 50)
  await read('0', 9, 10)
  t.equal(made(), 51)
})
