import { useSignal } from '@preact/signals'
import type { IssuedCredential, ShownCredential } from '../../../operations/credentials.ts'
import { Choice, CommandForm } from '../parts/form.tsx'
import { Problem, When } from '../parts/shown.tsx'
import { useCommandAnswer } from '../poll.ts'

/** How long both credentials work, in seconds. */
const overlaps = [
  ['86400', 'for 1 day'],
  ['3600', 'for 1 hour'],
  ['604800', 'for 7 days'],
  ['2592000', 'for 30 days'],
  ['60', 'for 1 minute'],
  ['', 'until somebody revokes it'],
] as const

/** The form that makes a successor of a credential, with the same permissions. */
export function RotateCredential(props: {
  credential: ShownCredential
  done: (issued: IssuedCredential) => void
  cancelled: () => void
}) {
  const { username } = props.credential
  // Reads the credential again: another operator may have rotated it since the list was read.
  const { value, problem } = useCommandAnswer('credentials.show', { username })
  const revokeAt = value.value?.revokeAt
  const typed = useSignal<Readonly<Record<string, string>>>({})
  return (
    <CommandForm
      name="credentials.rotate"
      title={`Rotate ${username}`}
      label="Make the successor"
      typed={typed}
      args={({ overlap = '86400' }) => ({
        username,
        ...(overlap !== '' && { revokeAfter: Number(overlap) }),
      })}
      done={props.done}
      cancelled={props.cancelled}
    >
      <Problem text={problem.value} />
      {revokeAt && (
        <p class="notice">
          It ends <When at={revokeAt} />: it has been rotated already.
        </p>
      )}
      <Choice typed={typed} name="overlap" label="The old one goes on working" choices={overlaps} />
    </CommandForm>
  )
}
