import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import t from 'tap'
import { eventSchemas } from '../../event/kind.ts'
import { ControlEvent } from '../../event/kinds/control.ts'
import { DataEvent } from '../../event/kinds/data.ts'
import { TrackEvent } from '../../event/kinds/track.ts'
import { checkShape } from '../../event/shape.ts'
import { projectFile } from '../root.ts'
import { words } from '../words.ts'

t.test('every schema has an id, a title and a description for the API pages', async (t) => {
  for (const schema of eventSchemas) {
    t.match(schema, { $id: /^[A-Z]\w+$/, title: /./, description: /./, type: 'object' })
  }
  t.equal(new Set(eventSchemas.map((schema) => '$id' in schema && schema.$id)).size, eventSchemas.length)
})

t.test('every schema is one by JSON Schema, draft 7', (t) => {
  // This Ajv has no formats such as `date-time`.
  const ajv = new Ajv({ strict: true, allowUnionTypes: true, validateFormats: false })
  for (const schema of eventSchemas) t.ok(ajv.validateSchema(schema), ajv.errorsText())
  t.notOk(ajv.validateSchema({ minLength: -1 }), 'this would show it')
  t.end()
})

t.test('every $ref names a schema of the list', async (t) => {
  const refs = [...JSON.stringify(eventSchemas).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1])
  const ids = eventSchemas.map((schema) => '$id' in schema && schema.$id)
  t.strictSame(
    [...new Set(refs)].filter((ref) => !ids.includes(ref ?? '')),
    [],
  )
})

t.test('required fields are those of service.md §2.1 and design.md §7', async (t) => {
  t.strictSame(TrackEvent.required.toSorted(), words(`length playlistItemId services start title type`))
  t.strictSame(ControlEvent.required.toSorted(), ['event', 'name', 'services', 'state', 'time', 'validUntil'])
  t.strictSame(DataEvent.required.toSorted(), ['cycle', 'event', 'services', 'start'])
})

t.test('Event and Reference refuse unknown properties, the others carry them through', async (t) => {
  const closed = eventSchemas.filter(
    (schema) => 'additionalProperties' in schema && !schema.additionalProperties,
  )
  t.strictSame(
    closed.map((schema) => '$id' in schema && schema.$id),
    ['Reference', 'TrackEvent'],
  )
})

t.test('the examples are valid and refer to the sample feed', async (t) => {
  const feed = readFileSync(projectFile('config/sample-feed.json'), 'utf8')
  const examples: unknown[] =
    'examples' in TrackEvent && Array.isArray(TrackEvent.examples) ? TrackEvent.examples : []
  t.ok(examples.length > 0)
  for (const example of examples) {
    t.match(checkShape(example, { protocol: 'mqtt', now: 0 }), { kind: { class: 'track' } })
    for (const [id] of JSON.stringify(example).matchAll(/(?:urn|crid):[^"]+/g))
      t.ok(feed.includes(`"${id}"`), id)
  }
})
