import t from 'tap'
import { keptDocument } from '../../bridge-https/kept.ts'

t.test('a document is made once, and again when what it depends on has changed', async (t) => {
  let state = 'live'
  let made = 0
  const document = keptDocument(
    () => state,
    () => ({ state, made: ++made }),
  )
  const first = document()
  t.equal(first.text.toString(), '{"state":"live","made":1}')
  for (let request = 0; request < 3; request++) t.equal(document(), first, 'the same')
  state = 'gone'
  for (let request = 0; request < 3; request++)
    t.equal(document().text.toString(), '{"state":"gone","made":2}')
  t.not(document().tag, first.tag, 'with another tag')
})
