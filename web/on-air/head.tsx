import { connection, ticker } from './livestreams.ts'
import { search } from './search.ts'
import { clockTime } from './times.ts'

/** Shows whether the page is up to date. Screen readers announce changes. */
export function Connection() {
  const { state, reason } = connection.value
  const words = { connecting: 'Connecting', live: 'Live', lost: 'Connection lost', refused: 'Not connected' }[
    state
  ]
  return (
    <>
      <time class="wall-clock" aria-hidden="true">
        {clockTime(ticker.value)}
      </time>
      <p class={`connection ${state}`} role="status" title={reason}>
        <span class="dot" aria-hidden="true" />
        {words}
      </p>
    </>
  )
}

export function Search() {
  return (
    <search class="search">
      <input
        type="search"
        aria-label="Search livestreams, titles and artists"
        placeholder="Search"
        maxLength={500}
        value={search.value}
        onInput={({ currentTarget }) => {
          search.value = currentTarget.value
        }}
      />
    </search>
  )
}
