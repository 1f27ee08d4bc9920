import { readFileSync } from 'node:fs'
import t from 'tap'
import { sampleFeedPath } from '../../config/sample-feed.ts'
import { createLivestreams } from '../../on-air/livestreams.ts'
import { viewOf } from '../../on-air/view.ts'
import { parseFeed } from '../../validator/feed/feed.ts'

t.test('all livestreams are listed without a look-up of each that has a topic', async (t) => {
  const parsed = parseFeed(readFileSync(sampleFeedPath, 'utf8'))
  if ('problem' in parsed) throw new Error(parsed.problem)
  const { feed, livestreams } = parsed
  let lookUps = 0
  const counted: typeof feed = {
    ...feed,
    byId: {
      get(id) {
        lookUps++
        return feed.byId.get(id)
      },
    },
  }
  const other = 'urn:org:permanent-livestream:0'
  const stored = new Map([...livestreams.map(({ id }) => id), other].map((id) => [id, { id, createdAt: '' }]))
  const listed = createLivestreams({ feed: () => counted, former: feed, topics: { stored } })
  const expected = [other, ...livestreams.map(({ id }) => id)].sort()
  t.same(await listed.ids(viewOf(['radio/#'])), expected)
  t.equal(lookUps, 0)
  t.same(
    await createLivestreams({ feed: () => undefined, former: feed, topics: { stored } }).ids(
      viewOf(['radio/#']),
    ),
    expected,
  )
})
