import { useSignal } from '@preact/signals'
import type { Track } from '../answers.ts'
import { Action } from '../parts/action.tsx'
import { CommandForm, Field } from '../parts/form.tsx'
import { Badge, Facts, Head, Problem, type Tone, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { useAsked } from '../poll.ts'
import { amount, count, dateAndTime } from '../words.ts'

const names: Readonly<Record<string, string>> = {
  push: 'Webhooks (push)',
  publish: 'Publishing and log-in over HTTPS (publish)',
}
const tones: Readonly<Record<string, Tone>> = { live: 'good', deprecated: 'warn', gone: 'plain' }

/** Where the tracks of the HTTPS API stand on their way out, and who still uses them. */
export function Lifecycle() {
  const { value, problem, refresh } = useAsked('lifecycle.status', {}, 10_000)
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

function TrackPanel({ track, changed }: { track: Track; changed: () => void }) {
  const { track: name, state, sunset, link, requests, traffic } = track
  const isAnnouncing = useSignal(false)
  return (
    <section class="panel">
      <h2>
        {names[name] ?? name} <Badge tone={tones[state] ?? 'plain'}>{state}</Badge>
      </h2>
      <Facts
        of={[
          ['Requests of the last 7 days and today', count(requests)],
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
          ['Retired', track.retiredAt && dateAndTime(track.retiredAt)],
        ]}
      />
      <h3>Who still uses it</h3>
      <Table
        caption={`Requests of ${name}`}
        rows={traffic.toReversed()}
        keyOf={({ day, route }) => `${day} ${route}`}
        empty="Nobody, for 7 days."
        columns={[
          { title: 'Day', cell: ({ day }) => day },
          { title: 'Route', cell: ({ route }) => <span class="id">{route}</span> },
          { title: 'Requests', isNumber: true, cell: (row) => count(row.requests) },
        ]}
      />
      {state !== 'gone' && (
        <div class="buttons">
          <button
            type="button"
            onClick={() => {
              isAnnouncing.value = !isAnnouncing.value
            }}
          >
            {state === 'live' ? 'Announce its end' : 'Change the announcement'}
          </button>
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
      {isAnnouncing.value && (
        <Announce
          track={track}
          done={() => {
            isAnnouncing.value = false
            changed()
          }}
          cancelled={() => {
            isAnnouncing.value = false
          }}
        />
      )}
    </section>
  )
}

function Announce({ track, done, cancelled }: { track: Track; done: () => void; cancelled: () => void }) {
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
