import t from 'tap'
import { readSelection, select } from '../../../delivery/webhook/selection.ts'

const institution = 'urn:org:institution:a'
const livestream = 'urn:org:permanent-livestream:1'
const rows = [
  { institutionId: institution, livestream: { id: livestream }, state: 'idle' },
  { institutionId: institution, livestream: { id: 'urn:org:livestream:2' }, state: 'paused' },
  { institutionId: 'urn:org:institution:b', livestream: { id: livestream }, state: 'paused' },
]

t.test('what is asked for must all hold, and the limit counts what is left', async (t) => {
  for (const [asked, places] of [
    [{}, [0, 1, 2]],
    [{ institution }, [0, 1]],
    [{ livestream }, [0, 2]],
    [{ state: 'paused' }, [1, 2]],
    [{ state: 'paused', livestream }, [2]],
    [{ state: 'disabled' }, []],
    [{ limit: 2 }, [0, 1]],
    [{ state: 'paused', limit: 1 }, [1]],
    [{ limit: 1_000_000_000 }, [0, 1, 2]],
  ] as const) {
    const selection = readSelection(asked)
    if ('error' in selection) throw new Error(selection.error)
    t.same(
      select(rows, selection),
      places.map((place) => rows[place]),
      JSON.stringify(asked),
    )
  }
})

t.test('what cannot be asked for is named with what is expected', async (t) => {
  const expected = {
    institution: 'an institution URN (urn:org:institution:<id>)',
    livestream: 'a livestream URN (urn:org:permanent-livestream:<id>)',
    state: 'one of idle, beginning, delivering, behind, retrying, paused, disabled, closed',
    limit: 'a whole number from 1',
  }
  for (const [name, value, shown] of [
    ['institution', 'a', '"a"'],
    ['institution', livestream, `"${livestream}"`],
    ['institution', null, 'null'],
    ['livestream', '', '""'],
    ['livestream', [livestream], 'an array of 1'],
    ['state', 'gone', '"gone"'],
    ['state', 'toString', '"toString"'],
    ['limit', '5', '"5"'],
    ['limit', 0, '0'],
    ['limit', -1, '-1'],
    ['limit', 1.5, '1.5'],
    ['limit', Number.NaN, 'NaN'],
  ] as const) {
    t.same(readSelection({ [name]: value }), { error: `${name} must be ${expected[name]}, not ${shown}` })
  }
})
