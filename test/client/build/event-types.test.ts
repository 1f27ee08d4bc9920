import { readFileSync } from 'node:fs'
import t from 'tap'
import { eventTypes } from '../../../client/build/event-types.ts'
import { pythonLibrary } from '../../../client/build/python-types.ts'
import { projectFile } from '../../root.ts'

t.test('the types of the package are those of the schemas', async (t) => {
  const present = readFileSync(projectFile('client/events.ts'), 'utf8')
  t.equal(present, eventTypes(), 'make them again: node --import=tsx client/build/event-types.ts')
})

t.test('the types of the Python library are those of the schemas', async (t) => {
  const present = readFileSync(projectFile('client/python/now_playing_hub.py'), 'utf8')
  t.equal(present, pythonLibrary(present), 'make them again: node --import=tsx client/build/python-types.ts')
})
