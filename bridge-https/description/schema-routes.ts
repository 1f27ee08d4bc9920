import { eventSchemas } from '../../event/kind.ts'
import { refuse } from '../answer.ts'
import { keptByAll } from '../caching.ts'
import type { Route } from '../routes/route.ts'
import { apiSchemas, components } from './openapi.ts'
import { receivedSchemas } from './received-schemas.ts'

const dialect = 'https://json-schema.org/draft/2020-12/schema'

/** The route of the JSON Schemas of events and of the HTTPS API (design.md §9). */
export function schemaRoutes({ publicUrl }: { publicUrl: () => string }): Route[] {
  // References are relative to the `$id`.
  const named = [...eventSchemas, ...receivedSchemas, ...apiSchemas]
  const schemas = new Map(Object.entries(components(named, (name) => `${name}.json`)))
  return [
    {
      method: 'GET',
      path: '/schemas/{name}.json',
      id: 'schema',
      summary: 'One schema of this description, or of events',
      tag: 'Description',
      params: { name: { description: 'Name of the schema', enum: [...schemas.keys()] } },
      answers: {
        200: { description: 'JSON Schema (2020-12)', mediaType: 'application/schema+json' },
        404: 'There is no schema of this name',
      },
      handle({ params: { name = '' } }) {
        const schema = schemas.get(name)
        if (!schema) return refuse(404, undefined, 'Schema not found')
        const document = { $schema: dialect, $id: `${publicUrl()}/schemas/${name}.json`, ...schema }
        return {
          status: 200,
          body: Buffer.from(JSON.stringify(document)),
          headers: { 'content-type': 'application/schema+json', ...keptByAll(300) },
        }
      },
    },
  ]
}
