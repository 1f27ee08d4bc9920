import { type ConfiguredOutput, outputs } from '../delivery/outputs/outputs.ts'
import { delay, maxAge } from '../event/delivery-fields.ts'
import { Type } from '../event/type.ts'
import { show } from './mask.ts'
import { formatted, oneOf, text } from './value-schemas.ts'

/** Most livestreams of an output. */
const maxLivestreams = 10_000

const idsAsNames = 'ids of livestreams as names, such as urn:org:permanent-livestream:4638c4eac849c618'

/** The schema of an output, by its driver: `oneOf` with `driver` as discriminator. */
const output = Type.Unsafe<ConfiguredOutput>({
  type: 'object',
  description: `an object with name, driver (one of ${outputs.map(({ name }) => name).join(', ')}) and livestreams`,
  required: ['driver'],
  properties: { driver: oneOf(outputs.map(({ name }) => name)) },
  discriminator: { propertyName: 'driver' },
  oneOf: outputs.map(({ name, there, settings }) =>
    Type.Object(
      {
        name: formatted('name', 'letters, digits, dots, dashes and underscores, at most 64'),
        driver: Type.Unsafe<string>({ const: name, description: name }),
        livestreams: Type.Unsafe<Record<string, string>>({
          type: 'object',
          minProperties: 1,
          maxProperties: maxLivestreams,
          propertyNames: { type: 'string', format: 'livestream', description: idsAsNames },
          additionalProperties: there,
          description: 'an object that names at least one livestream by its id',
        }),
        idle: Type.Optional(text()),
        delay: Type.Optional(delay),
        maxAge: Type.Optional(maxAge),
        ...settings.properties,
      },
      { additionalProperties: false },
    ),
  ),
})

export const outputList = Type.Array(output, { maxItems: 200, description: 'a list of at most 200 outputs' })

/** Checks what the schemas of outputs cannot. Leaves out outputs that do not fit their schema. */
export function outputProblems(configured: unknown): string[] {
  const list = (Array.isArray(configured) ? configured : []).map(
    (one): Record<string, unknown> => Object(one),
  )
  const names = list.map(({ name }) => name)
  return list
    .flatMap((settings, index) => {
      const { name } = settings
      const isTwice = name !== undefined && names.indexOf(name) < index
      const twice = isTwice ? [`outputs.${index}.name: ${show('name', name)}, expected each name once`] : []
      return [...twice, ...ownProblems(settings).map((line) => `outputs.${index}.${line}`)]
    })
    .concat(sharedPlaces(list))
}

/** Places to which an output writes, and one before it does, too: each would undo what the other has shown. */
function sharedPlaces(list: readonly Record<string, unknown>[]): string[] {
  const users = new Map<string, number>()
  return list.flatMap((settings, index) => {
    const { driver, names, isWhole } = readOutput(settings)
    const places = new Set(
      (isWhole && driver?.place && names.map((name) => driver.place?.(settings, name))) || [],
    )
    return [...places].flatMap((place) => {
      const key = `${driver?.name} ${place}`
      const before = users.get(key)
      users.set(key, before ?? index)
      return before === undefined
        ? []
        : [
            `outputs.${index}: writes to ${JSON.stringify(place)}, as outputs.${before} does, expected a place of its own`,
          ]
    })
  })
}

function ownProblems(settings: Record<string, unknown>): string[] {
  const { driver, properties, names, isWhole } = readOutput(settings)
  const found = (isWhole && driver?.problems?.(settings, names)) || []
  const { idle } = settings
  // One that only leaves spaces would be sent, and refused, again and again.
  const isBlank = typeof idle === 'string' && driver?.carrier.write({ artist: null, title: idle }).text === ''
  const isShared = driver?.place !== undefined && new Set(names).size < names.length
  return [
    ...found.map(
      ({ field, expected }) =>
        `${field}: ${show(field, settings[field], properties[field])}, expected ${expected}`,
    ),
    ...(isBlank
      ? [`idle: ${show('idle', idle)}, expected a text of which ${driver?.name} shows something`]
      : []),
    ...(isShared ? ['livestreams: two with the same name there, expected each once'] : []),
  ]
}

function readOutput(settings: Record<string, unknown>) {
  const driver = outputs.find(({ name }) => name === settings.driver)
  const { properties = {}, required = [] } = driver?.settings ?? {}
  // The schema has already reported what is missing or no text.
  const isWhole = required.every((field) => typeof settings[field] === typeOf(properties[field]))
  const names = Object.values<unknown>(Object(settings.livestreams)).map(String)
  return { driver, properties, names, isWhole }
}

/** `number` also for a whole number. */
function typeOf(schema: unknown): unknown {
  const { type } = Object(schema)
  return type === 'integer' ? 'number' : type
}
