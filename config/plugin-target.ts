import { resolve } from 'node:path'
import type { Static } from 'typebox'
import { delay, maxAge } from '../event/delivery-fields.ts'
import { Type } from '../event/type.ts'
import { flag, formatted, httpsUrl, text } from './value-schemas.ts'

/** A target of the plugin queue (design.md §10). Further fields are settings of its driver. */
type PluginTarget = Static<typeof pluginTarget> & Record<string, unknown>

export const pluginTarget = Type.Object(
  {
    type: formatted('name', 'letters, digits, dots, dashes and underscores, at most 64'),
    autoEnable: Type.Optional(flag()),
    url: Type.Optional(httpsUrl()),
    driver: Type.Optional(text()),
    maxAge: Type.Optional(maxAge),
    delay: Type.Optional(delay),
  },
  { additionalProperties: true, description: 'an object with type and url' },
)

/** Makes the path of the driver absolute. */
export function resolveDriver(target: Static<typeof pluginTarget>, cwd: string): PluginTarget {
  return { ...target, ...(target.driver !== undefined && { driver: resolve(cwd, target.driver) }) }
}
