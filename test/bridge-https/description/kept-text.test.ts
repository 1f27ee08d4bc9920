import t from 'tap'
import { keptText } from '../../../bridge-https/description/kept-text.ts'

t.test('a document is made once, and again when what it depends on has changed', async (t) => {
  let state = 'live'
  let made = 0
  const text = keptText(
    () => state,
    () => ({ state, made: ++made }),
  )
  for (let request = 0; request < 3; request++) t.equal(text(), '{"state":"live","made":1}')
  state = 'gone'
  for (let request = 0; request < 3; request++) t.equal(text(), '{"state":"gone","made":2}')
})
