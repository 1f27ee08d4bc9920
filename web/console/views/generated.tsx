import { isRecord } from '../../../client/kind.ts'
import { go } from '../../page/location.ts'
import type { Command } from '../commands.ts'
import { Answer } from '../parts/answer.tsx'
import { CommandButton } from '../parts/command.tsx'
import { KeptAnswer } from '../parts/kept-answer.tsx'
import { CommandList, everyMsOf } from '../parts/list.tsx'
import { Copyable, Head, Problem } from '../parts/shown.tsx'
import { valueAt } from '../parts/template.ts'
import { buttonsBelow, commandsIn, headOf, loses, rowButtonsOf, sectionsOf } from '../placed.ts'
import { useCommandAnswer } from '../poll.ts'

/** A view that is made from the rows of its commands: lists, answers, and buttons. */
export function GeneratedView({ view, title }: { view: string; title: string }) {
  return (
    <>
      <Head title={title}>
        {headOf(view).map(({ name }) => (
          <CommandButton key={name} name={name} isStrong />
        ))}
      </Head>
      {commandsIn(view).map((command) => (
        <KeptAnswer key={command.name} command={command} />
      ))}
      {sectionsOf(view).map((command) => (
        <Section key={command.name} command={command} view={title} />
      ))}
    </>
  )
}

function Section({ command, view }: { command: Command; view: string }) {
  const { name, result, console } = command
  const { title = name, panels } = console ?? {}
  if (panels) return <Panels command={command} headings={panels} />
  return (
    <section class="panel">
      {title !== view && <h2>{title}</h2>}
      {result.type === 'array' ? (
        <>
          <CommandList command={command} />
          <Buttons of={buttonsBelow(name)} row={{}} />
        </>
      ) : (
        <Whole command={command} />
      )}
    </section>
  )
}

/** An answer that is no list. */
function Whole({ command }: { command: Command }) {
  const { name, result, console } = command
  const { value, problem } = useCommandAnswer(name, console?.ask ?? {}, everyMsOf(command))
  return (
    <>
      <Problem text={problem.value} />
      {value.value === undefined ? (
        <p class="loading">Loading…</p>
      ) : (
        <Answer of={value.value} schema={result} title={console?.title ?? name} parts={command.columns} />
      )}
      {isRecord(value.value) && <Buttons of={buttonsBelow(name)} row={value.value} />}
    </>
  )
}

/** A panel for each item of a list. `headings`: what the value of the first column is called. */
function Panels({ command, headings }: { command: Command; headings: Readonly<Record<string, string>> }) {
  const { name, result } = command
  const { value, problem } = useCommandAnswer(name, {}, everyMsOf(command))
  const [first = '', ...parts] = command.columns ?? []
  const items: unknown = value.value
  return (
    <>
      <Problem text={problem.value} />
      {Array.isArray(items) &&
        items.filter(isRecord).map((item) => {
          const key = String(valueAt(item, String(first)))
          return (
            <section key={key} class="panel">
              <h2>{headings[key] ?? key}</h2>
              <Answer of={item} schema={result.items ?? {}} title={key} parts={parts} />
              <Buttons of={rowButtonsOf(name)} row={item} />
            </section>
          )
        })}
    </>
  )
}

/** One row of a list, on a page of its own, with the buttons that the row has in its list. */
export function GeneratedPage(props: { command: Command; title: string; of: string }) {
  const { command, title, of } = props
  const { name, result, console } = command
  const { view = '', by = '', of: list = '', copy = {}, heading = '' } = console ?? {}
  const buttons = rowButtonsOf(list)
  const { value, problem } = useCommandAnswer(name, { [by]: of }, everyMsOf(command))
  return (
    <>
      <Head back={[`/console/${view}`, title]} title={String(valueAt(value.value, heading) ?? of)} />
      <Problem text={problem.value} />
      {buttons.map((button) => (
        <KeptAnswer key={button.name} command={button} />
      ))}
      {isRecord(value.value) && (
        <section class="panel">
          <Answer of={value.value} schema={result} title={of} parts={command.columns} />
          <ToCopy of={value.value} labels={copy} />
          <Buttons of={buttons} row={value.value} lost={() => go(`/console/${view}`)} />
        </section>
      )}
    </>
  )
}

/** Fields of an answer with buttons that copy them. */
function ToCopy(props: { of: Readonly<Record<string, unknown>>; labels: Readonly<Record<string, string>> }) {
  const { of: value, labels } = props
  const given = Object.entries(labels).flatMap(([field, label]) => {
    const text = valueAt(value, field)
    return typeof text === 'string' ? [<Copyable key={field} label={label} value={text} />] : []
  })
  return given.length > 0 && <div class="copies">{given}</div>
}

/** The buttons of commands. `lost` is called after a command that removes something. */
function Buttons(props: {
  of: readonly Command[]
  row: Readonly<Record<string, unknown>>
  lost?: () => void
}) {
  const { of: buttons, row, lost } = props
  if (buttons.length === 0) return null
  return (
    <div class="buttons">
      {buttons.map((button) => (
        <CommandButton
          key={button.name}
          name={button.name}
          row={row}
          {...(lost && loses(button) && { done: lost })}
        />
      ))}
    </div>
  )
}
