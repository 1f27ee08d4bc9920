import { isRecord } from '../../../client/kind.ts'
import { currentPath, pathPart } from '../../page/location.ts'
import type { Schema } from '../commands.ts'
import { institutionName, isOwnLivestream, livestreamName } from '../livestream-names.ts'
import { isOwnView, pagesOf } from '../placed.ts'
import { pathShown } from '../start-view.ts'
import { bytes, count, dateAndTime, durationOf, ms } from '../words.ts'
import { Badge, Contact, None, type Tone, When } from './shown.tsx'
import { isInstant, isNothing } from './template.ts'

const tones: Readonly<Record<string, Tone>> = {
  live: 'good',
  shown: 'good',
  'idle text': 'good',
  test: 'warn',
  signing: 'good',
  idle: 'good',
  delivering: 'good',
  delivered: 'good',
  published: 'good',
  'on air': 'good',
  stale: 'warn',
  silent: 'bad',
  operate: 'warn',
  deprecated: 'warn',
  paused: 'warn',
  'no target': 'warn',
  blocked: 'warn',
  behind: 'bad',
  retrying: 'bad',
  disabled: 'bad',
  'driver down': 'bad',
  'dead letter': 'bad',
  invalid: 'bad',
  failed: 'bad',
  loss: 'bad',
  change: 'warn',
}

/** Fields whose texts are for machines. */
const isForMachines =
  /(^id|Id|^(username|kid|topics?|route|filters?|subscriptions|source|loadedFrom|movedTo|action|target|name|driver|queue|path|errorCode|payload|payloadHash))$/

/** A state, in the colour of how good or bad it is. */
export function State({ of }: { of: string }) {
  return <Badge tone={tones[of] ?? 'plain'}>{of}</Badge>
}

/** A value of an answer as people read it. `field` is its name. Of a list, a cell of a table shows the beginning. */
export function Value(props: { of: unknown; field: string; schema: Schema; isWhole?: boolean }) {
  const { of: value, field, schema, isWhole } = props
  if (value === null || value === undefined || value === '') return <None />
  if (isUnknown(schema) && !isRecord(value))
    return <span class="id">{typeof value === 'string' ? value : JSON.stringify(value)}</span>
  if (field === 'ok') return <Badge tone={value ? 'good' : 'bad'}>{value ? 'well' : 'not well'}</Badge>
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>
  if (typeof value === 'number') {
    if (schema.description?.endsWith('since the epoch')) return <When at={new Date(value).toISOString()} />
    return <>{numberOf(value, field, schema)}</>
  }
  if (Array.isArray(value))
    return <Several of={value} field={field} schema={schema.items ?? {}} isWhole={isWhole} />
  if (isRecord(value)) return <small>{wordsOfRecord(value)}</small>
  return <Text of={String(value)} field={field} schema={schema} isWhole={isWhole} />
}

function Several(props: {
  of: readonly unknown[]
  field: string
  schema: Schema
  isWhole: boolean | undefined
}) {
  const { of: values, field, schema, isWhole } = props
  const shown = values.slice(0, isWhole ? 200 : 3)
  const more = values.length - shown.length
  if (values.length === 0) return <None />
  const all = shown.map((value, nth) => <Value key={nth} of={value} field={field} schema={schema} />)
  if (schema.enum) return <span class="buttons">{all}</span>
  return (
    <ul class={isWhole ? '' : 'several'}>
      {all.map((value, nth) => (
        <li key={nth}>{value}</li>
      ))}
      {more > 0 && <li class="muted">and {count(more)} more</li>}
    </ul>
  )
}

function Text(props: { of: string; field: string; schema: Schema; isWhole: boolean | undefined }) {
  const { of: text, field, schema, isWhole } = props
  if (schema.enum) return <State of={text} />
  if (isInstant(text))
    return (
      <>
        {isWhole && `${dateAndTime(text)}, `}
        <When at={text} />
      </>
    )
  const isOwn = isOwnView(pathShown(currentPath.value).split('/')[2] ?? '')
  const named = isOwn ? ownNameOf(text) : nameOf(text)
  if (named)
    return <Named view={named.view} id={text} name={/^(id|externalId)$/.test(field) ? text : named.name} />
  const view = pagesOf(field, isOwn)
  if (view !== undefined) return <Named view={view} id={text} class="id" />
  if (field === 'contact' || field === 'email')
    return <Contact address={text} subject="The now-playing hub" />
  if (field === 'link' && /^https?:/.test(text)) return <a href={text}>{text}</a>
  if (text.length > 200)
    return (
      <details class="inline">
        <summary>show</summary>
        <pre>{text.slice(0, 20_000)}</pre>
      </details>
    )
  return (
    <span class={field === 'action' ? 'id kind' : isForMachines.test(field) ? 'id' : ''} dir="auto">
      {text}
    </span>
  )
}

/** The name of a livestream or an institution by its id, and the view that has a page of it. */
function nameOf(id: string): { view: string; name: string } | undefined {
  if (id.startsWith('urn:org:institution:')) return { view: 'institutions', name: institutionName(id) }
  return /^(crid:|urn:org:[a-z-]*livestream:)/.test(id)
    ? { view: 'livestreams', name: livestreamName(id) }
    : undefined
}

/** The same in a view of what is an institution's own: only its livestreams have pages. */
function ownNameOf(id: string): { view: string; name: string } | undefined {
  return isOwnLivestream(id) ? { view: 'own-livestreams', name: livestreamName(id) } : undefined
}

/** A link to the page of a thing, by its id. Without `name` it shows the name that is known, or the id. */
export function Named(props: { view: string; id: string; name?: string; class?: string }) {
  return (
    <a href={`/console/${props.view}/${pathPart(props.id)}`} title={props.id} class={props.class} dir="auto">
      {props.name ?? nameOf(props.id)?.name ?? props.id}
    </a>
  )
}

/** Whether the schema does not say what the value is. A number may then be a port. */
function isUnknown({ type, enum: values, anyOf }: Schema): boolean {
  return type === undefined && values === undefined && anyOf === undefined
}

function numberOf(value: number, field: string, { description = '' }: Schema): string {
  if (description === 'bytes' || /bytes$/i.test(field)) return bytes(value)
  if (description === 'seconds') return durationOf(value)
  if (description === 'milliseconds') return ms(value)
  return count(Math.round(value * 100) / 100)
}

/** `name: value · name: value` */
function wordsOfRecord(record: Readonly<Record<string, unknown>>): string {
  return Object.entries(record)
    .filter(([, value]) => !isNothing(value))
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' · ')
    .slice(0, 400)
}
