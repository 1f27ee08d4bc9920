import { eventDefinitions, kindsOfClients } from './event-types.ts'

/*
 * Makes the types and kinds of events in client/python/now_playing_hub.py from what the hub checks events with, between
 * two marks: the library is one file, which is copied.
 */

const marked = /(?<=^# <(made by [^>]+)>\n).*?(?=^# <\/\1>$)/ms
/** Columns of a line. */
const width = 120

/** What of JSON Schema the schemas of events use. */
interface Schema {
  $ref?: string
  description?: string
  type?: string | string[]
  enum?: string[]
  const?: string
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
}

/** The text of client/python/now_playing_hub.py with the types as they must be. `text`: what it is now. */
export function pythonLibrary(text: string): string {
  if (!marked.test(text)) throw new Error('client/python/now_playing_hub.py has no marks')
  return text.replace(marked, () => pythonTypes())
}

function pythonTypes(): string {
  const definitions: [string, Schema][] = Object.entries(eventDefinitions())
  const events = definitions.map(([name]) => name).filter((name) => name.endsWith('Event'))
  const classes = definitions.flatMap(([name, schema]) => typedDict(name, schema))
  return [...classes, `HubEvent = Union[${events.join(', ')}]`, kinds(), '']
    .join('\n\n\n')
    .replace(/^/, '\n\n')
    .replace(/\n+$/, '\n\n\n')
}

/** Writes the table of kinds, and the fields of tracks in what is playing now. */
function kinds(): string {
  const rows = kindsOfClients()
  const ofTracks = rows.filter((row) => row.class === 'track').map(({ kind }) => kind)
  const texts = rows.map(({ kind }) => JSON.stringify(kind)).join(', ')
  const table = rows.map(({ name, kind, class: cls, timeField, slotField, endField }) => {
    const fields = [kind, cls, timeField, slotField, endField].map((value) => JSON.stringify(value) ?? 'None')
    return `"${name}": _EventKind(${fields.join(', ')}),`
  })
  return [
    `Kind = Literal[${texts}]`,
    block('class _EventKind(NamedTuple):', [
      '"""What the name of an event says. Fields: those with the event time, with the name of a state, and with its end."""',
      '',
      ...[
        'kind: Kind',
        'event_class: str',
        'time_field: str',
        'slot_field: str | None',
        'end_field: str | None',
      ],
    ]),
    `${block('_KINDS: dict[str, _EventKind] = {', table)}\n}`,
    block(
      '@dataclass(frozen=True)\nclass _Tracks:',
      ofTracks.map((kind) => `${kind}: Track | None = None`),
    ),
  ].join('\n\n\n')
}

/** A `TypedDict` has all of its fields required, or none (Python before 3.11), so it is two classes. */
function typedDict(name: string, { description = '', properties = {}, required = [] }: Schema): string[] {
  const nested = Object.entries(properties).flatMap(([field, schema]) =>
    schema.properties === undefined ? [] : typedDict(nestedName(name, field), schema),
  )
  const fieldsOf = (isRequired: boolean) =>
    Object.entries(properties)
      .filter(([field]) => required.includes(field) === isRequired)
      .flatMap(([field, schema]) => [
        ...comment(schema.description),
        ...declaration(field, typeOf(schema, nestedName(name, field))),
      ])
  const [must, may] = [fieldsOf(true), fieldsOf(false)]
  const doc = description ? [...docString(description), ''] : []
  if (must.length === 0) return [...nested, block(`class ${name}(TypedDict, total=False):`, [...doc, ...may])]
  if (may.length === 0) return [...nested, block(`class ${name}(TypedDict):`, [...doc, ...must])]
  return [
    ...nested,
    block(`class _Required${name}(TypedDict):`, must),
    block(`class ${name}(_Required${name}, total=False):`, [...doc, ...may]),
  ]
}

const nestedName = (name: string, field: string) => `${name}${field[0]?.toUpperCase()}${field.slice(1)}`

const block = (head: string, lines: string[]) =>
  [head, ...lines.map((line) => (line === '' ? '' : `    ${line}`))].join('\n')

function typeOf(schema: Schema, nested: string): string {
  if (schema.$ref !== undefined) return schema.$ref.replace('#/$defs/', '')
  const values = schema.const === undefined ? schema.enum : [schema.const]
  const types = [schema.type ?? []].flat()
  const isNullable = types.includes('null')
  const [type = 'any'] = types.filter((one) => one !== 'null')
  const named = values
    ? `Literal[${values
        .filter((value) => value !== null)
        .map((value) => JSON.stringify(value))
        .join(', ')}]`
    : plainTypeOf(type, schema, nested)
  return isNullable ? `${named} | None` : named
}

function plainTypeOf(type: string, schema: Schema, nested: string): string {
  if (type === 'array') return `list[${typeOf(schema.items ?? {}, nested)}]`
  if (type === 'object') return schema.properties === undefined ? 'dict[str, Any]' : nested
  const plain = plainTypes.get(type)
  if (plain === undefined) throw new Error(`no Python type for ${type}`)
  return plain
}

const plainTypes = new Map([
  ['string', 'str'],
  ['number', 'float'],
  ['integer', 'int'],
  ['boolean', 'bool'],
  ['any', 'Any'],
])

function declaration(field: string, type: string): string[] {
  const line = `${field}: ${type}`
  if (line.length + 4 <= width) return [line]
  return wrap(line, width - 8).map((part, index) => (index === 0 ? part : `    ${part}`))
}

const comment = (text = '') => wrap(text, width - 6).map((line) => `# ${line}`)

function docString(text: string): string[] {
  const [first = '', ...rest] = wrap(text, width - 10)
  return rest.length === 0 ? [`"""${first}"""`] : ['"""', first, ...rest, '"""']
}

/** Lines of at most so many columns, cut between words. */
function wrap(text: string, columns: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ').filter(Boolean)) {
    if (line !== '' && line.length + 1 + word.length > columns) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return line === '' ? lines : [...lines, line]
}
