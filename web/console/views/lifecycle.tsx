import { useSignal } from '@preact/signals'
import type { ApiTrack } from '../../../operations/https-api.ts'
import { now } from '../../page/clock.ts'
import { institutionName } from '../names.ts'
import { Action } from '../parts/action.tsx'
import { Choice, CommandForm, Field } from '../parts/form.tsx'
import { Badge, Contact, Facts, Head, Problem, type Tone, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'
import { amount, count, dateAndTime } from '../words.ts'

const names: Readonly<Record<string, string>> = {
  push: 'Webhooks (push)',
  publish: 'Publishing and log-in over HTTPS (publish)',
}
const tones: Readonly<Record<string, Tone>> = { live: 'good', deprecated: 'warn', gone: 'plain' }

/** The API tracks with their states and their remaining users. A track is a group of routes that retire together. */
export function Lifecycle() {
  const { value, problem, refresh } = useCommandAnswer('lifecycle.status', {}, 10_000)
  return (
    <>
      <Head title="Life cycle of the HTTPS API" />
      <Problem text={problem.value} />
      {value.value?.map((track) => (
        <TrackPanel key={track.track} track={track} changed={refresh} />
      ))}
    </>
  )
}

function TrackPanel({ track, changed }: { track: ApiTrack; changed: () => void }) {
  const { track: name, state, sunset, link, requests, traffic, left, brownoutUntil } = track
  const open = useSignal<'announcement' | 'brown-out' | undefined>(undefined)
  const isOff = brownoutUntil !== null && Date.parse(brownoutUntil) > now()
  const closed = () => {
    open.value = undefined
  }
  const done = () => {
    closed()
    changed()
  }
  return (
    <section class="panel">
      <h2>
        {names[name] ?? name} <Badge tone={tones[state] ?? 'plain'}>{state}</Badge>
      </h2>
      <Facts
        of={[
          ['Announced', track.announcedAt && dateAndTime(track.announcedAt)],
          [
            'Sunset',
            sunset && (
              <>
                {dateAndTime(sunset)}, <When at={sunset} />
              </>
            ),
          ],
          ['What users read', link && <a href={link}>{link}</a>],
          [
            'Brown-out',
            isOff && (
              <>
                its routes answer 503, ends <When at={brownoutUntil} />
              </>
            ),
          ],
          ['Retired', track.retiredAt && dateAndTime(track.retiredAt)],
        ]}
      />
      <h3>Who still uses it</h3>
      <Table
        caption={`Who still uses ${name}`}
        rows={left}
        keyOf={({ userId }) => userId}
        textOf={({ institutionId, email, route }) =>
          [institutionName(institutionId), institutionId, email, route].join(' ')
        }
        empty="Nobody, for 90 days."
        columns={[
          {
            title: 'Institution',
            cell: ({ institutionId }) => (
              <a href={`/console/institutions/${encodeURIComponent(institutionId)}`} dir="auto">
                {institutionName(institutionId)}
              </a>
            ),
          },
          {
            title: 'User',
            cell: ({ email }) => <Contact address={email} subject="HTTPS API of the now-playing hub" />,
          },
          { title: 'Last request', cell: ({ lastAt }) => <When at={lastAt} /> },
          { title: 'Route', cell: ({ route }) => <span class="id">{route}</span> },
        ]}
      />
      <details class="more-of">
        <summary>Requests of the last 7 days and today: {count(requests)}</summary>
        <Table
          caption={`Requests of ${name}`}
          rows={traffic.toReversed()}
          keyOf={({ day, route }) => `${day} ${route}`}
          empty="None."
          columns={[
            { title: 'Day', cell: ({ day }) => day },
            { title: 'Route', cell: ({ route }) => <span class="id">{route}</span> },
            { title: 'Requests', isNumber: true, cell: (row) => count(row.requests) },
          ]}
        />
      </details>
      {state !== 'gone' && (
        <div class="buttons">
          <button
            type="button"
            onClick={() => {
              open.value = 'announcement'
            }}
          >
            {state === 'live' ? 'Announce its end' : 'Change the announcement'}
          </button>
          {state === 'deprecated' && !isOff && (
            <button
              type="button"
              onClick={() => {
                open.value = 'brown-out'
              }}
            >
              Switch it off for a while
            </button>
          )}
          {isOff && (
            <Action
              name="lifecycle.brownout"
              args={{ track: name, for: 0 }}
              label="Switch it on again"
              done={changed}
              isStrong
            />
          )}
          {state === 'deprecated' && (
            <Action
              name="lifecycle.retire"
              args={{ track: name }}
              label="Retire"
              about={names[name] ?? name}
              loss={
                <p>
                  Its routes answer 410 for ever: {amount(requests, 'request')} came in the last 7 days and
                  today.
                  {name === 'push' ? ' All webhooks end.' : ''}
                </p>
              }
              done={changed}
            />
          )}
        </div>
      )}
      {open.value === 'announcement' && <Announce track={track} done={done} cancelled={closed} />}
      {open.value === 'brown-out' && <BrownOut track={track} done={done} cancelled={closed} />}
    </section>
  )
}

function Announce({ track, done, cancelled }: { track: ApiTrack; done: () => void; cancelled: () => void }) {
  const typed = useSignal<Readonly<Record<string, string>>>({
    sunset: track.sunset ?? '',
    link: track.link ?? '',
  })
  return (
    <CommandForm
      name="lifecycle.announce"
      title={`Announce the end of ${track.track}`}
      label="Announce"
      typed={typed}
      args={({ sunset = '', link = '' }) => ({
        track: track.track,
        sunset: sunset.trim(),
        link: link.trim(),
      })}
      done={done}
      cancelled={cancelled}
    >
      <Field
        typed={typed}
        name="sunset"
        label="Sunset"
        isRequired
        placeholder="2027-12-31"
        hint="From then on it may be retired"
      />
      <Field
        typed={typed}
        name="link"
        label="Link"
        isRequired
        placeholder="https://…"
        hint="Where users read what to do"
      />
    </CommandForm>
  )
}

/** The times, in seconds, for which an operator can switch an API track off. */
const brownOuts = [
  ['600', '10 minutes'],
  ['60', '1 minute'],
  ['3600', '1 hour'],
  ['14400', '4 hours'],
  ['86400', '1 day'],
] as const

function BrownOut({ track, done, cancelled }: { track: ApiTrack; done: () => void; cancelled: () => void }) {
  const typed = useSignal<Readonly<Record<string, string>>>({})
  return (
    <CommandForm
      name="lifecycle.brownout"
      title={`Brown-out of ${track.track}`}
      label="Switch it off"
      typed={typed}
      args={({ length = '600' }) => ({ track: track.track, for: Number(length) })}
      done={done}
      cancelled={cancelled}
    >
      <Choice
        typed={typed}
        name="length"
        label="Its routes answer 503 for"
        choices={brownOuts}
        hint="So that its last users notice. It can be switched on again at any time."
      />
    </CommandForm>
  )
}
