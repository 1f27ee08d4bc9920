import { useSignal } from '@preact/signals'
import { type Command, commands } from '../commands.ts'
import { Answer } from '../parts/answer.tsx'
import { argumentsOf, fieldsOf, whatIsMissing } from '../parts/arguments.ts'
import { CommandButton } from '../parts/command.tsx'
import { ArgumentFields } from '../parts/fields.tsx'
import { CommandForm } from '../parts/form.tsx'
import { Head } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { typedFor } from '../parts/typed-texts.ts'
import { loses } from '../placed.ts'
import { capital } from '../words.ts'

const effects = { none: 'reads', change: 'changes', loss: 'removes for good' } as const

/** All commands of `hubctl`, each with a page where it can be given. */
export function AllCommands() {
  return (
    <>
      <Head title="All commands" />
      <section class="panel">
        <Table
          caption="All commands"
          rows={commands.filter(({ permission }) => permission === 'operate')}
          keyOf={({ name }) => name}
          textOf={({ name, summary }) => `${name} ${summary}`}
          empty="None."
          columns={[
            {
              title: 'Command',
              cell: ({ name }) => (
                <a href={`/console/commands/${name}`} class="id kind">
                  {name}
                </a>
              ),
            },
            { title: 'What it does', cell: ({ summary }) => summary },
            { title: 'Effect', cell: ({ effect }) => effects[effect] },
          ]}
        />
      </section>
    </>
  )
}

/** A form for any command, and its answer. */
export function CommandPage({ command }: { command: Command }) {
  const { name, summary, effect, result } = command
  const { typed } = typedFor(command)
  const answer = useSignal<unknown>(undefined)
  const fields = fieldsOf(command, {}, typed.value)
  const done = (result: unknown) => {
    answer.value = result
  }
  return (
    <>
      <Head back={['/console/commands', 'All commands']} title={name} />
      <p>{capital(summary)}.</p>
      {loses(command) ? (
        <CommandButton name={name} isWhole done={done} />
      ) : (
        <CommandForm
          name={name}
          title="Arguments"
          label={effect === 'none' ? 'Ask' : 'Do it'}
          typed={typed}
          args={(texts) => argumentsOf(fields, texts)}
          wrong={(texts) => whatIsMissing(command, fields, texts)}
          done={done}
        >
          <ArgumentFields command={command} fields={fields} typed={typed} />
        </CommandForm>
      )}
      {answer.value !== undefined && (
        <section class="panel" role="status" aria-label="Answer">
          <h2>Answer</h2>
          <Answer
            of={answer.value}
            schema={result}
            title="Answer"
            parts={result.type === 'array' ? command.columns : undefined}
          />
        </section>
      )}
    </>
  )
}
