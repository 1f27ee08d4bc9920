import t from 'tap'
import { createHalfReceived, hasTooSmallPieces } from '../../listener/half-received.ts'
import { createRandom } from '../random.ts'

t.test('what comes in pieces is one buffer, however it was cut', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 10_000 }, (_, index) => index % 251))
  for (const size of [1, 7, 1000, 10_000]) {
    for (const expected of [0, 10, 10_000, 1_000_000]) {
      const collected = createHalfReceived(1_000_000, 10_000).collect(() => t.fail('there is room'))
      for (let at = 0; at < bytes.length; at += size) collected.add(bytes.subarray(at, at + size), expected)
      t.ok(collected.bytes().equals(bytes), `${size} bytes at a time, ${expected} expected`)
      t.equal(collected.length, bytes.length)
    }
  }
})

t.test('announced bytes take no room before they come, and pieces are not kept', async (t) => {
  const room = createHalfReceived(1000, 1000)
  let ended = 0
  const first = room.collect(() => ended++)
  const second = room.collect(() => ended++)
  first.add(Buffer.alloc(400), 1_000_000)
  second.add(Buffer.alloc(400), 1_000_000)
  t.equal(ended, 0)
  const piece = Buffer.from('a')
  const third = room.collect(() => t.fail('it is the youngest'))
  third.add(piece, 100)
  piece.write('b')
  t.equal(third.bytes().toString(), 'a')
})

t.test('what is collected keeps no other bytes in memory, which nothing would count', (t) => {
  const collected = createHalfReceived(1000, 1000).collect(() => t.fail('there is room'))
  collected.add(Buffer.alloc(5), 0)
  t.equal(collected.bytes().buffer.byteLength, 5)
  collected.add(Buffer.alloc(5), 1_000_000)
  t.equal(collected.bytes().buffer.byteLength, 10)
  t.end()
})

t.test('without room the one that is on its way for longest ends', async (t) => {
  const room = createHalfReceived(1000, 1000)
  const ended: string[] = []
  const [old, middle, young] = ['old', 'middle', 'young'].map((name) =>
    room.countBytes(() => ended.push(name)),
  )
  old?.grow(300)
  middle?.grow(300)
  young?.grow(300)
  middle?.grow(150)
  t.same(ended, ['old'])
  middle?.free()
  young?.grow(600)
  t.same(ended, ['old'], 'what is whole takes no room')
  young?.grow(500)
  t.same(ended, ['old'], 'alone it is bounded by its own limit')
  const next = room.countBytes(() => ended.push('next'))
  next.grow(1)
  t.same(ended, ['old', 'young'])
  young?.free()
  next.grow(998)
  t.same(ended, ['old', 'young'], 'what has ended is not counted, nor taken off twice')
})

t.test('what gives way may free others, and begin others', async (t) => {
  const freeing = createHalfReceived(1000, 1000)
  const ended: string[] = []
  const first = freeing.countBytes(() => {
    ended.push('first')
    second.free()
  })
  const second = freeing.countBytes(() => ended.push('second'))
  const third = freeing.countBytes(() => ended.push('third'))
  for (const one of [first, second, third]) one.grow(300)
  freeing.countBytes(() => ended.push('newest')).grow(900)
  t.same(ended, ['first', 'third'], 'who was freed does not end')

  const beginning = createHalfReceived(1000, 1000)
  let ends = 0
  const oldest = beginning.countBytes(() => {
    ends++
    if (ends < 5) successor.grow(100)
  })
  const successor = beginning.countBytes(() => t.fail('it fits exactly'))
  const other = beginning.countBytes(() => t.fail('it fits exactly'))
  oldest.grow(300)
  other.grow(300)
  beginning.countBytes(() => t.fail('it is the youngest')).grow(600)
  t.equal(ends, 1)
})

t.test('a piece takes its own room only, and none when the whole is freed', async (t) => {
  const room = createHalfReceived(1000, 1000)
  room.countBytes(() => t.fail('there is room')).grow(100)
  const collected = room.collect(() => t.fail('there is room'))
  for (let count = 0; count < 9; count++) collected.add(Buffer.alloc(100), 900)
  collected.free()
  room.countBytes(() => t.fail('there is room')).grow(500)
  room.countBytes(() => t.fail('it is the youngest')).grow(400)
})

t.test('in any order of beginnings and ends, the oldest gives way', async (t) => {
  const room = createHalfReceived(1000, 1000)
  /** What holds bytes, as the test expects it: oldest first. */
  let holding: { name: number; bytes: number }[] = []
  const ended: number[] = []
  const expected: number[] = []
  const places = Array.from({ length: 12 }, (_, name) => room.countBytes(() => ended.push(name)))
  const total = () => holding.reduce((sum, { bytes }) => sum + bytes, 0)
  const random = createRandom('half-received')
  for (let step = 0; step < 5_000; step++) {
    const name = random.below(places.length)
    const own = holding.find((one) => one.name === name)
    if (random.happens(0.4)) {
      places[name]?.free()
      holding = holding.filter((one) => one !== own)
      continue
    }
    const bytes = random.below(301)
    places[name]?.grow(bytes)
    if (own) own.bytes += bytes
    else holding.push({ name, bytes })
    while (total() > 1000) {
      const gone = holding.find((one) => one.name !== name)
      if (!gone) break
      expected.push(gone.name)
      holding = holding.filter((one) => one !== gone)
    }
  }
  t.ok(expected.length > 500, `${expected.length} gave way`)
  t.same(ended, expected)
})

t.test('thousands of tiny pieces are too fine, some of them are not', async (t) => {
  const table: [pieces: number, bytes: number, expected: boolean][] = [
    [1, 1, false],
    [1000, 1000, false],
    [5000, 5000, true],
    [400_000, 400_000, true],
    // Pieces of 500 bytes, like the smallest TCP segments, and pieces of 50 bytes.
    [800, 400_000, false],
    [8000, 400_000, false],
  ]
  for (const [pieces, bytes, expected] of table) {
    t.equal(hasTooSmallPieces(pieces, bytes, 4096), expected, `${pieces} pieces of ${bytes} bytes`)
  }
  const collected = createHalfReceived(1_000_000, 4096).collect(() => {})
  let added = 0
  while (collected.add(Buffer.of(1), 400_000)) added++
  t.ok(added < 5000, `${added} bytes`)
})
