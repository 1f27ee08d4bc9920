import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { schemaOptions } from '../event/schema-options.ts'
import { formats } from './formats.ts'
import { readJson } from './json-file.ts'
import { mask, show } from './mask.ts'
import { nearest } from './nearest.ts'
import { crossProblems } from './rules.ts'
import { sampleFeedPath } from './sample-feed.ts'
import {
  type Config,
  isFileOnly,
  type Layer,
  type Limits,
  type Setting,
  settings,
  variableName,
} from './settings.ts'

const rows = Object.entries<Setting>(settings)
const defaults = Object.fromEntries(
  rows.flatMap(([name, row]) => ('default' in row ? [[name, row.default]] : [])),
)

/**
 * Reads the configuration (design.md §3). The environment overrides the JSON file of `HUB_CONFIG`, and the file
 * overrides the defaults. `problems`: a line for each.
 */
export function loadConfig(env: NodeJS.ProcessEnv, cwd: string): { config: Config } | { problems: string[] } {
  const file = readFile(env, cwd)
  const environment = readEnvironment(env)
  const merged: Layer = { ...defaults, ...file.layer, ...environment.layer }
  const problems = [...file.problems, ...environment.problems, ...crossProblems(merged)]
  if (problems.length > 0) return { problems }
  return { config: freeze(complete(merged, cwd)) }
}

/** Warnings about settings for trying out the hub, if the stage is `prod`. A sentence each. */
export function trialSettings({ stage, feed, tlsCert }: Config): string[] {
  if (stage !== 'prod') return []
  return [
    ...(feed === sampleFeedPath ? ['HUB_FEED is unset: the livestreams are those of the sample feed'] : []),
    ...(tlsCert === undefined
      ? ['HUB_TLS_CERT is unset: clients must be told to trust a development CA']
      : []),
  ]
}

/** The configuration as operators may see it (`hubctl config`): without passwords and tokens. */
export function maskedConfig(config: Config): Record<string, unknown> {
  const entries: [string, unknown][] = Object.entries(config)
  return Object.fromEntries(
    entries.map(([name, value]) => [name, mask(name, value, rowOf.get(name)?.schema)]),
  )
}

/** The whole numbers of a configuration. Seconds become milliseconds: `connectTimeout` is `connectTimeoutMs`. */
export function limitsOf(config: Config): Limits {
  const entries: [string, unknown][] = Object.entries(config)
  return Object.fromEntries(
    entries.flatMap(([name, value]) => {
      if (typeof value !== 'number') return []
      return [rowOf.get(name)?.unit === 'seconds' ? [`${name}Ms`, value * 1000] : [name, value]]
    }),
  ) as Limits
}

interface Source {
  layer: Layer
  problems: string[]
}

function readFile(env: NodeJS.ProcessEnv, cwd: string): Source {
  if (!env.HUB_CONFIG) return { layer: {}, problems: [] }
  const path = resolve(cwd, env.HUB_CONFIG)
  let content: Buffer
  try {
    content = readFileSync(path)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const problem = `HUB_CONFIG: ${show('', path)}, expected a readable JSON file (${reason})`
    return { layer: {}, problems: [problem] }
  }
  const parsed = readJson(content)
  if ('problems' in parsed) {
    return { layer: {}, problems: parsed.problems.map((problem) => `HUB_CONFIG: ${path}, ${problem}`) }
  }
  return check(parsed.value, rows, (place) => `${place} in ${path}`)
}

function readEnvironment(env: NodeJS.ProcessEnv): Source {
  const layer: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(env)) {
    // Some process supervisors can unset a variable only by an empty value.
    if (!name.startsWith('HUB_') || name === 'HUB_CONFIG' || !value) continue
    const found = variables.find(([key]) => variableName(key) === name)
    if (found === undefined) layer[name] = value
    else layer[found[0]] = parseVariable(found[1].schema, value)
  }
  return check(layer, variables, (key) => (key.startsWith('HUB_') ? key : variableName(key)))
}

/** Converts a variable to the type of its setting, if possible. The schema refuses other texts. */
function parseVariable(schema: object, text: string): unknown {
  const type = 'type' in schema ? schema.type : 'string'
  if ('anyOf' in schema && Array.isArray(schema.anyOf))
    return schema.anyOf.map((each) => parseVariable(each, text)).find((value) => value !== text) ?? text
  if (type === 'integer' && /^-?\d+$/.test(text)) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

/** Checks the settings of one source, which may have those of the rows `known`. */
function check(
  value: unknown,
  known: readonly (readonly [string, Setting])[],
  label: (place: string) => string,
): Source {
  const names = Object.keys(Object(value))
  const given = known.filter(([name]) => names.includes(name))
  // To compile the schemas of all settings takes a tenth of a start. An unknown name needs all, to say what was meant.
  const validate = compile(given.length === names.length ? given : known)
  if (validate(value)) return { layer: value, problems: [] }
  // Remove equal lines. A value of the wrong type breaks the rules `type` and `enum`. Both give the same line.
  const errors = (validate.errors ?? []).filter(({ keyword }) => !toldByOthers.has(keyword))
  const problems = [...new Set(errors.map((error) => describe(error, label)))]
  // Keeps wrong settings, so that the same run reports the problems between settings.
  return { layer: value as Layer, problems }
}

/** The name and the driver of an output have errors of their own. */
const toldByOthers: ReadonlySet<string> = new Set(['propertyNames', 'discriminator'])

function describe(error: ErrorObject, label: (place: string) => string): string {
  const { keyword, params, data, parentSchema } = error
  const place = error.instancePath.split('/').slice(1)
  if (keyword === 'additionalProperties') {
    const known = Object.keys(parentSchema?.properties ?? {}).map((key) => label(key).split(' ')[0] ?? key)
    // Leave the value out, because it may be a secret.
    return `${label([...place, params.additionalProperty].join('.'))}: unknown, ${insteadOf(params.additionalProperty, known)}`
  }
  if (keyword === 'required') {
    const expected = parentSchema?.properties?.[params.missingProperty]?.description
    return `${label([...place, params.missingProperty].join('.'))}: missing, expected ${expected}`
  }
  const name = place.findLast((segment) => !/^\d+$/.test(segment)) ?? ''
  return `${label(place.join('.'))}: ${show(name, data, parentSchema)}, expected ${parentSchema?.description}`
}

/** What to write instead of an unknown name. Lists the known names if they are few. */
function insteadOf(name: string, known: readonly string[]): string {
  const [inFile] = rows.find(([key, row]) => isFileOnly(row) && variableName(key) === name) ?? []
  if (inFile !== undefined) return `expected ${inFile} in the file that HUB_CONFIG names`
  if (known.length <= shortList) return `expected one of ${known.join(', ')}`
  const meant = nearest(name, known)
  return meant === undefined
    ? 'expected a setting that docs/reference/settings.md lists'
    : `did you mean ${meant}?`
}

const shortList = 10

/** Fills in defaults that follow from other settings, and makes paths absolute. */
function complete(set: Layer, cwd: string): Config {
  const given: Record<string, unknown> = set
  const entries = rows.flatMap(([name, { derive, complete }]) => {
    const value = given[name] ?? derive?.(set)
    if (value === undefined) return []
    return [[name, complete ? complete(value as never, cwd) : value]]
  })
  return Object.fromEntries(entries)
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(freeze)
  return value
}

const ajv = new Ajv({
  ...schemaOptions,
  allErrors: true,
  verbose: true,
  discriminator: true,
  formats,
})
const rowOf = new Map(rows)
const variables = rows.filter(([, row]) => !isFileOnly(row))

/** The names of all environment variables that the hub reads. */
export const variableNames: readonly string[] = [
  'HUB_CONFIG',
  ...variables.map(([name]) => variableName(name)),
]

/** The checks made so far, by the names of their settings: tests start many hubs in one process. */
const compiled = new Map<string, ValidateFunction<Layer>>()

function compile(of: readonly (readonly [string, Setting])[]): ValidateFunction<Layer> {
  const names = of.map(([name]) => name).join()
  const made = compiled.get(names)
  if (made) return made
  const properties = Object.fromEntries(of.map(([name, { schema }]) => [name, schema]))
  const validate = ajv.compile<Layer>({ type: 'object', properties, additionalProperties: false })
  compiled.set(names, validate)
  return validate
}
