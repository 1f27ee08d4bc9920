import { signal } from '@preact/signals'
import type { IssuedCredential } from '../../../operations/credentials.ts'
import { Choice, CommandForm, Field, InstitutionField, Lines, listOf, type Typed } from '../parts/form.tsx'

const typed: Typed = signal({})

/** The form that makes a credential. */
export function AddCredential(props: { done: (issued: IssuedCredential) => void; cancelled: () => void }) {
  const isPublisher = (typed.value.role ?? 'publisher') === 'publisher'
  return (
    <CommandForm
      name="credentials.add"
      title="Add a credential"
      label="Add"
      typed={typed}
      args={({ role = 'publisher', label = '', institution = '', institutions = '', classes, filters }) => ({
        ...{ role, label },
        ...(role === 'publisher'
          ? { institutions: listOf(`${institution},${institutions}`), classes: listOf(classes) }
          : { filters: listOf(filters) }),
      })}
      done={(result) => {
        typed.value = {}
        props.done(result)
      }}
      cancelled={props.cancelled}
    >
      <Choice
        typed={typed}
        name="role"
        label="Role"
        choices={[
          ['publisher', 'Publisher: sends events'],
          ['subscriber', 'Subscriber: reads events'],
        ]}
      />
      <Field
        typed={typed}
        name="label"
        label="Label"
        isRequired
        maxLength={32}
        hint="Part of the username: a-z, 0-9 and -"
      />
      {isPublisher ? (
        <>
          <InstitutionField typed={typed} name="institution" label="Institution" isRequired />
          <Field
            typed={typed}
            name="institutions"
            label="More institutions"
            hint="URNs, with commas between them"
          />
          <Field
            typed={typed}
            name="classes"
            label="Only these classes"
            hint="track, control, data; empty: all"
          />
        </>
      ) : (
        <Lines
          typed={typed}
          name="filters"
          label="Topic filters"
          isRequired
          hint="One per line, within radio/#"
        />
      )}
    </CommandForm>
  )
}
