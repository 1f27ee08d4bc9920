import { signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { useFocusOnHeading } from '../../page/focus.ts'
import { dateAndTime, relative } from '../words.ts'

/** How good or bad a state looks. */
export type Tone = 'good' | 'warn' | 'bad' | 'plain'

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

/** Changes every few seconds, so that times such as `4 s ago` go on. */
const tick = signal(0)
setInterval(() => {
  tick.value++
}, 5_000)

/** Shows how long ago an instant was, with the date as a tooltip. */
export function When({ at }: { at: string | null | undefined }) {
  void tick.value
  if (!at) return <None />
  return (
    <time dateTime={at} title={dateAndTime(at)}>
      {relative(at)}
    </time>
  )
}

/** Stands for a missing value. Narrow screens leave it out. */
export function None() {
  return <span class="muted none">–</span>
}

/** Names and values below each other; values that are missing are left out. */
export function Facts({ of }: { of: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  const known = of.filter(
    ([, value]) => value !== null && value !== undefined && value !== false && value !== '',
  )
  if (known.length === 0) return null
  return (
    <dl class="facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** An error message, in the hub's words: why a part of the view is missing. */
export function Problem({ text }: { text: string | undefined }) {
  return (
    <p class="problem" role="alert">
      {text}
    </p>
  )
}

/** A panel with something that is shown once. The panel scrolls into view: the pressed button may be far down. */
export function ShownOnce(props: {
  name: string
  title: string
  done: () => void
  children: ComponentChildren
}) {
  const panel = useRef<HTMLElement>(null)
  useEffect(() => {
    panel.current?.scrollIntoView({ block: 'nearest' })
    panel.current?.querySelector('h2')?.focus({ preventScroll: true })
  }, [])
  useFocusOnHeading(panel)
  return (
    <section ref={panel} class="panel issued" role="status" aria-label={props.name}>
      <h2 tabIndex={-1}>{props.title}</h2>
      {props.children}
      <div class="buttons">
        <button type="button" onClick={props.done}>
          Done
        </button>
      </div>
    </section>
  )
}

/** A text with a button that copies it. */
export function Copyable({ label, value }: { label: string; value: string }) {
  const said = useSignal('')
  return (
    <div class="copyable">
      <label class="field">
        <span>{label}</span>
        <input readOnly value={value} onFocus={({ currentTarget }) => currentTarget.select()} />
      </label>
      <button
        type="button"
        aria-label={`Copy: ${label}`}
        onClick={async () => {
          said.value = await navigator.clipboard.writeText(value).then(
            () => 'Copied',
            () => 'Select it and copy it by hand',
          )
        }}
      >
        Copy
      </button>
      <span class="said" role="status">
        {said.value}
      </span>
    </div>
  )
}

/** The contact to write to, as a link. */
export function Contact({ address, subject }: { address: string | null; subject: string }) {
  if (!address) return <span class="muted">no contact</span>
  return (
    <a
      href={`mailto:${encodeURIComponent(address).replace('%40', '@')}?subject=${encodeURIComponent(subject)}`}
    >
      {address}
    </a>
  )
}

/** The head of a view. `back`: the path and the name of the view that the shown one belongs to. */
export function Head(props: {
  title: string
  back?: readonly [path: string, name: string]
  children?: ComponentChildren
}) {
  const { title, back, children } = props
  return (
    <>
      {back && (
        <p class="back">
          <a href={back[0]}>{back[1]}</a>
        </p>
      )}
      <div class="view-head">
        <h1>{title}</h1>
        {children}
      </div>
    </>
  )
}
