import t from 'tap'
import { ownLivestreams } from '../../operations/institution/livestreams.ts'
import type { Own } from '../../operations/institution/own.ts'
import { institutions, station } from '../events.ts'
import { turnsBeside } from '../turns-beside.ts'

t.test('the list of an institution with very many livestreams leaves turns to others', async (t) => {
  const [institutionId = ''] = institutions
  const { id, title, externalId } = station()
  const one = { id, title, externalId, institutionId, publisherId: null, isListed: true }
  const livestreams: Partial<Own['livestreams']> = {
    all: async () => Array(40_000).fill(one),
    subscribers: async () => ({ ofAll: 0, byLivestream: {} }),
    nowOf: async () => undefined,
    silentSince: () => null,
    loopSince: () => null,
  }
  const own = { institutionId, livestreams } as Own
  t.ok((await turnsBeside(async () => ownLivestreams['livestreams.list'].run(own, {}))) > 4)
})
