import './on-air.css'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { focusContent } from '../page/focus.ts'
import { currentPath } from '../page/location.ts'
import { mustLogIn, user } from '../page/session.ts'
import { Shell } from '../page/shell.tsx'
import { startPage } from '../page/start.tsx'
import { Board } from './board.tsx'
import { Connection, Search } from './head.tsx'
import { LivestreamPage } from './livestream-page.tsx'
import { connection, follow, isListed, listProblem } from './livestreams.ts'
import { moveBars } from './progress.tsx'

/** The on-air page: all livestreams, or one of them. */
function OnAir() {
  const [, id] = /^\/livestreams\/(.+)$/.exec(currentPath.value) ?? []
  const isRefused = connection.value.state === 'refused'
  // Following begins when the user is known, and anew with another user.
  const who = user.value === undefined ? undefined : (user.value?.email ?? '')
  // A layout effect: until it begins, the page would show the state of the former connection.
  useLayoutEffect(() => (who === undefined || mustLogIn.value ? undefined : follow()), [who, mustLogIn.value])
  useEffect(() => {
    if (id === undefined) document.title = 'On air'
  }, [id])
  const shown = useRef(id)
  useEffect(() => {
    const former = shown.current
    shown.current = id
    if (former === id) return
    // Moves the focus for people who do not see the page change. On the way back, the focus goes to the former card.
    const card = id === undefined && document.querySelector(`.card a[href="/livestreams/${former}"]`)
    if (card instanceof HTMLElement) card.focus()
    else focusContent()
  }, [id])
  return (
    <Shell
      title="On air"
      tools={
        mustLogIn.value ? null : (
          <>
            {id === undefined && <Search />}
            <Connection />
          </>
        )
      }
    >
      {connection.value.state === 'lost' && !mustLogIn.value && (
        <p class="banner">{connection.value.reason} What you see may be out of date. Trying again…</p>
      )}
      {listProblem.value !== '' &&
        !isListed.value &&
        !isRefused &&
        !mustLogIn.value &&
        connection.value.state !== 'lost' && (
          <p class="banner">The names of the livestreams are missing: {listProblem.value} Trying again…</p>
        )}
      {isRefused ? (
        <p class="nothing">{connection.value.reason}</p>
      ) : id === undefined ? (
        <Board />
      ) : (
        <LivestreamPage key={id} id={decodeURIComponent(id)} />
      )}
    </Shell>
  )
}

startPage(<OnAir />, (path) => path === '/' || path.startsWith('/livestreams/'))
moveBars()
setInterval(moveBars, 1_000)
