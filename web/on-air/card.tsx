import { useComputed } from '@preact/signals'
import { controlsOn, upNext } from '../../client/now-playing.ts'
import { Cover } from './cover.tsx'
import { type Livestream, ticker } from './livestreams.ts'
import { Progress } from './progress.tsx'
import { Silence } from './silence.tsx'
import { TrackTitle } from './track-title.tsx'
import { nameOfControl } from './words.ts'

/** One livestream on the board. */
export function Card({ livestream }: { livestream: Livestream }) {
  const { id, title, now } = livestream
  const known = now.value
  const { playing, text } = known
  const next = upNext(known)
  // Computed as a text: a tick of `ticker` draws the card only if the text changes.
  const controls = useComputed(() =>
    controlsOn(now.value, ticker.value)
      .map(({ name }) => nameOfControl(name))
      .join(' · '),
  )
  return (
    <li class={`card ${playing ? '' : 'silent'} ${controls.value === '' ? '' : 'announcing'}`}>
      <Cover url={playing?.cover} name={title} id={id} />
      <div class="what">
        <h3>
          <a href={`/livestreams/${encodeURIComponent(id)}`} dir="auto">
            {title}
          </a>
        </h3>
        {controls.value !== '' && (
          <p class="announcement" dir="auto">
            {controls.value}
          </p>
        )}
        <Silence livestream={livestream} />
        <TrackTitle playing={playing} />
      </div>
      {(next || text?.text) && (
        <dl>
          {next && (
            <div>
              <dt>Next</dt>
              <dd dir="auto">{[next.artist, next.title].filter(Boolean).join(' – ')}</dd>
            </div>
          )}
          {text?.text && (
            <div>
              <dt>Text</dt>
              <dd dir="auto">{text.text}</dd>
            </div>
          )}
        </dl>
      )}
      {playing && <Progress track={playing} />}
    </li>
  )
}
