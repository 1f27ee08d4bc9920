import stringWidth from 'string-width'
import t from 'tap'
import type { CommandOf } from '../../../cli/command.ts'
import { commands } from '../../../cli/commands.ts'
import { createPrinter } from '../../../cli/print.ts'
import { operations } from '../../../operations/operations.ts'

t.test('the line of an event with a hundred errors has the first three', async (t) => {
  const list = commands.find(({ words }) => words === 'events list') as CommandOf<'events.list'> | undefined
  const { events, next } = operations['events.list'].resultExample
  const [row] = events
  if (!row || !list) throw new Error('there is no example')
  const errors = Array.from({ length: 100 }, (_, nth) => ({
    path: `.services.${nth}.type`,
    message: 'must be one of …',
    errorCode: 'enum.openapi.validation',
  }))
  const printed = String(list.print({ events: [{ ...row, errors }], next }, createPrinter({})))
  const reasons = [0, 1, 2].map((nth) => `enum.openapi.validation .services.${nth}.type`)
  t.ok(printed.trimEnd().endsWith(`${reasons.join(', ')}, and 97 more`), printed)
})

t.test('the columns of events that are followed are as wide for every script', async (t) => {
  const tail = commands.find(({ words }) => words === 'events tail')
  const [row] = operations['events.list'].resultExample.events
  const errors = [{ path: '.title', message: 'wrong', errorCode: 'the-last-column' }]
  const places = ['Meeresrauschen', '港の灯り', 'Ku\u0308stenwelle', '👩‍🚀'].map((title) => {
    const line = tail?.line?.({ ...row, title, errors }, createPrinter({})) ?? ''
    return stringWidth(line.slice(0, line.indexOf('the-last-column')))
  })
  t.equal(new Set(places).size, 1, places.join(' '))
})
