import { signal, useSignal } from '@preact/signals'
import type { ResetLink, ShownUser } from '../../../operations/users.ts'
import { institutionName } from '../names.ts'
import { Action } from '../parts/action.tsx'
import { CommandForm, Field, InstitutionField, Tick, type Typed } from '../parts/form.tsx'
import { Badge, Head, keptForUser, Problem, Secret, ShownOnce, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'
import { relative } from '../words.ts'

const everyMs = 10_000
const permissions = ['publish', 'subscribe', 'operate'] as const
const usual = { publish: 'yes', subscribe: 'yes' }
const typed: Typed = signal<Readonly<Record<string, string>>>(usual)

const link = keptForUser<ResetLink>()

/** Users of the HTTPS API and of these pages. */
export function Users() {
  const users = useCommandAnswer('users.list', {}, everyMs)
  const isAdding = useSignal(false)
  return (
    <>
      <Head title="Users">
        <button
          type="button"
          class="strong"
          onClick={() => {
            isAdding.value = true
          }}
        >
          Add a user
        </button>
      </Head>
      {link.value && <OneTimeLink key={link.value.resetUrl} {...link.value} />}
      {isAdding.value && (
        <AddUser
          done={(result) => {
            link.value = result
            isAdding.value = false
            users.refresh()
          }}
          cancelled={() => {
            typed.value = usual
            isAdding.value = false
          }}
        />
      )}
      <Problem text={users.problem.value} />
      <section class="panel">
        <Table
          caption="Users"
          rows={users.value.value}
          keyOf={({ userId }) => userId}
          textOf={({ email, institutionId, permissions }) =>
            [email, institutionId, institutionName(institutionId), ...permissions].join(' ')
          }
          empty="There is no user."
          columns={[
            { title: 'E-mail', cell: ({ email }) => email },
            {
              title: 'Institution',
              cell: ({ institutionId }) => (
                <span title={institutionId}>{institutionName(institutionId)}</span>
              ),
            },
            {
              title: 'May',
              cell: (user) => (
                <span class="buttons">
                  {user.permissions.map((one) => (
                    <Badge key={one} tone={one === 'operate' ? 'warn' : 'plain'}>
                      {one}
                    </Badge>
                  ))}
                </span>
              ),
            },
            {
              title: 'Password',
              cell: ({ hasPassword }) => (hasPassword ? 'chosen' : <span class="muted">not yet</span>),
            },
            { title: 'Made', cell: ({ createdAt }) => <When at={createdAt} /> },
            {
              title: 'Actions',
              isUntitled: true,
              cell: (user) => (
                <Actions
                  user={user}
                  linked={(result) => {
                    link.value = result
                  }}
                  removed={users.refresh}
                />
              ),
            },
          ]}
        />
      </section>
    </>
  )
}

function Actions(props: { user: ShownUser; linked: (link: ResetLink) => void; removed: () => void }) {
  const { email, permissions } = props.user
  return (
    <span class="buttons">
      <Action
        name="users.reset-password"
        args={{ email }}
        label="Reset link"
        about={email}
        done={props.linked}
      />
      <Action
        name="users.remove"
        args={{ email }}
        label="Remove"
        about={email}
        loss={
          <p>
            {email} cannot log in any more, and all its log-ins end at once ({permissions.join(', ')}).
            Subscriptions that it made stay with its institution.
          </p>
        }
        done={props.removed}
      />
    </span>
  )
}

function AddUser(props: { done: (link: ResetLink) => void; cancelled: () => void }) {
  return (
    <CommandForm
      name="users.add"
      title="Add a user"
      label="Add"
      typed={typed}
      wrong={(ticked) =>
        permissions.some((one) => ticked[one] === 'yes') ? undefined : 'Tick what the user may do.'
      }
      args={({ email = '', institution = '', ...rest }) => ({
        ...{ email: email.trim(), institution: institution.trim() },
        permissions: permissions.filter((one) => rest[one] === 'yes'),
      })}
      done={(result) => {
        typed.value = usual
        props.done(result)
      }}
      cancelled={props.cancelled}
    >
      <Field typed={typed} name="email" label="E-mail address" isRequired maxLength={254} />
      <InstitutionField typed={typed} name="institution" label="Institution" isRequired />
      <fieldset class="field wide">
        <legend>May</legend>
        <Tick typed={typed} name="publish" label="publish" hint="send events over HTTPS" />
        <Tick typed={typed} name="subscribe" label="subscribe" hint="read events, and have webhooks" />
        <Tick typed={typed} name="operate" label="operate" hint="everything in this console" />
      </fieldset>
    </CommandForm>
  )
}

function OneTimeLink({ email, resetUrl, expiresAt, warning }: ResetLink) {
  return (
    <ShownOnce
      name="The link"
      title="The link works once and is shown only now"
      done={() => {
        link.value = undefined
      }}
    >
      <p>
        Hand it to {email}: it leads to a page where a password is chosen. It ends {relative(expiresAt)}.
      </p>
      <Secret label="Link" value={resetUrl} />
      {warning && <p class="notice">{warning}</p>}
    </ShownOnce>
  )
}
