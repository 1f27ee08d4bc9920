import t from 'tap'
import { createRecords } from '../../watch/records.ts'

const most = 60_000

t.test('the first livestreams have records that stay, and of all others the newest', async (t) => {
  const records = createRecords((): { name?: string } => ({}))
  t.equal(records.get('0'), undefined, 'a look makes none')
  for (let number = 0; number < 4 * most; number++) records.of(`${number}`).name = `${number}`
  t.equal(records.count(), most)
  t.strictSame(records.get('0'), { name: '0' })
  t.strictSame(records.get(`${4 * most - 1}`), { name: `${4 * most - 1}` })
  t.equal(records.get(`${most}`), undefined)
  t.ok([...records.all()].length <= 3 * most)
  t.equal(records.stay(`${most}`), undefined, 'there is no room')

  const newest = records.of(`${4 * most - 1}`)
  records.delete('0')
  t.equal(records.get('0'), undefined)
  t.equal(records.stay(`${4 * most - 1}`), newest, 'a record that finds room stays from then on')
  t.equal(records.of(`${4 * most - 1}`), newest)
  t.equal([...records.all()].filter(([, record]) => record === newest).length, 1)
  records.delete(`${4 * most - 1}`)
  t.equal(records.get(`${4 * most - 1}`), undefined)
  records.stay('0')
  t.equal(records.count(), most)
})
