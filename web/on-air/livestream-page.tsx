import { useComputed } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { controlsOn, upNext } from '../../client/now-playing.ts'
import { Cover } from './cover.tsx'
import { History } from './history.tsx'
import {
  connection,
  institutions,
  isListed,
  type Livestream,
  listProblem,
  livestreams,
  ticker,
} from './livestreams.ts'
import { Progress } from './progress.tsx'
import { Silence } from './silence.tsx'
import { clockTime, clockTimeOn } from './times.ts'
import { TrackTitle } from './track-title.tsx'
import { nameOfControl } from './words.ts'

/** One livestream, with the titles that it played before. */
export function LivestreamPage({ id }: { id: string }) {
  const isLoading = !isListed.value && listProblem.value === ''
  const livestream = isLoading ? undefined : livestreams.value.get(id)
  return (
    <div class="one" data-stale={connection.value.state === 'lost'}>
      <p class="back">
        <a href="/">← All livestreams</a>
      </p>
      {livestream ? <One livestream={livestream} /> : <Unknown />}
    </div>
  )
}

function Unknown() {
  const words = isListed.value ? 'There is no such livestream.' : 'Loading…'
  return <p class="nothing">{words}</p>
}

function One({ livestream }: { livestream: Livestream }) {
  const { title, institutionId, now } = livestream
  const institution = institutions.value.find(({ id }) => id === institutionId)
  const known = now.value
  const next = upNext(known)
  useEffect(() => {
    document.title = `${title} · On air`
  }, [title])
  return (
    <>
      <Hero livestream={livestream} institution={institution?.title ?? ''} />
      <div class="beside">
        {next && (
          <section aria-labelledby="next">
            <h2 id="next">Next, {clockTimeOn(next.time, ticker.value)}</h2>
            <p class="title" dir="auto">
              {next.title}
            </p>
            <p class="artist" dir="auto">
              {next.artist}
            </p>
          </section>
        )}
        {known.text?.text && (
          <section aria-labelledby="text">
            <h2 id="text">Radiotext</h2>
            <p class="text" dir="auto">
              {known.text.text}
            </p>
          </section>
        )}
      </div>
      <History livestream={livestream} />
    </>
  )
}

function Hero({ livestream, institution }: { livestream: Livestream; institution: string }) {
  const { id, title, now } = livestream
  const { playing } = now.value
  return (
    <article class="hero">
      <Cover url={playing?.cover} name={title} id={id} />
      <div class="what">
        <h1 dir="auto">{title}</h1>
        <p class="institution" dir="auto">
          {institution}
        </p>
        <Controls livestream={livestream} />
        <Silence livestream={livestream} />
        <TrackTitle playing={playing} />
        {playing && <Progress track={playing} />}
      </div>
    </article>
  )
}

/** Control states that are on. Screen readers read them out, because an announcement begins unexpectedly. */
function Controls({ livestream }: { livestream: Livestream }) {
  const shown = useComputed(() =>
    controlsOn(livestream.now.value, ticker.value)
      .map(({ name, validUntil }) => `${nameOfControl(name)}, until ${clockTime(validUntil)} at the latest`)
      .join(' · '),
  )
  return (
    <p class="announcements" role="status">
      {shown.value !== '' && (
        <span class="announcement" dir="auto">
          {shown.value}
        </span>
      )}
    </p>
  )
}
