import { Counter, Gauge, Registry } from 'prom-client'
import t from 'tap'
import { createExposition } from '../../telemetry/exposition.ts'

// The pause between expositions keeps no process alive. In a node, its sockets do.
const alive = setInterval(() => {}, 1_000)
t.teardown(() => clearInterval(alive))

t.test('an exposition has all metrics of all registries, as prom-client writes them', async (t) => {
  const [one, other] = [new Registry(), new Registry()]
  new Counter({ name: 'one', help: 'The first', labelNames: ['kind'], registers: [one] }).inc({ kind: 'a"b' })
  new Gauge({ name: 'other', help: 'The second', registers: [other] }).set(2)
  const text = (await createExposition(async () => [one, other])()).toString()
  t.equal(text, await Registry.merge([one, other]).metrics())
})

t.test('all who ask meanwhile share the next exposition, which is newer than their question', async (t) => {
  let collected = 0
  let asked = 0
  const registry = new Registry()
  new Gauge({
    name: 'asked',
    help: 'Questions so far',
    registers: [registry],
    collect() {
      collected++
      this.set(asked)
    },
  })
  const exposition = createExposition(async () => [registry])
  const valueFor = async () => {
    const number = ++asked
    const [, value] = /^asked (\d+)$/m.exec((await exposition()).toString()) ?? []
    return { number, value: Number(value) }
  }
  const answers = await Promise.all(Array.from({ length: 1000 }, valueFor))
  answers.push(...(await Promise.all([valueFor(), valueFor()])))
  t.equal(collected, 2, 'two expositions for 1002 questions')
  t.same(
    answers.filter(({ number, value }) => value < number),
    [],
  )
})

t.test('after a metric that fails, the next exposition is made', async (t) => {
  let fails = true
  const registry = new Registry()
  new Gauge({
    name: 'fragile',
    help: 'Fails once',
    registers: [registry],
    collect() {
      if (fails) throw new Error('no value')
    },
  })
  const exposition = createExposition(async () => [registry])
  await t.rejects(exposition(), /no value/)
  fails = false
  t.match((await exposition()).toString(), /^fragile 0$/m)
})
