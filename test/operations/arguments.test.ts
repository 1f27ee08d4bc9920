import t from 'tap'
import { checkCredentialRequest } from '../../acl/permissions.ts'
import { checkAnnouncement } from '../../bridge-https/lifecycle/track.ts'
import { whyWrong } from '../../operations/check-arguments.ts'
import { ownOperations } from '../../operations/institution/operations.ts'
import { operations } from '../../operations/operations.ts'

t.test('the schemas refuse what the hub refuses, and nothing else', async (t) => {
  const institution = 'urn:org:institution:75b657fb49856f7b'
  for (const filter of [
    ...['radio/#', 'radio', 'radio/+/track/playing', 'radio/+/#', 'radio/a b/ü', 'radio/$x', 'radio/\ud800'],
    ...['#', '+/#', '', 'radio//data', 'radio/', '/radio/#', 'radio/#/x', 'radio/a#', 'radio/a+', 'radio/\0'],
  ]) {
    const request = { role: 'subscriber', label: 'x', filters: [filter] }
    const isWrong = 'error' in checkCredentialRequest(request)
    t.equal(whyWrong(operations['credentials.add'], request) !== undefined, isWrong, JSON.stringify(filter))
  }
  for (const label of ['a', 'kw-1', '-', 'x'.repeat(32), '', 'A', 'a b', 'ü', 'x'.repeat(33)]) {
    const request = { role: 'publisher', label, institutions: [institution] }
    const isWrong = 'error' in checkCredentialRequest(request)
    t.equal(whyWrong(operations['credentials.add'], request) !== undefined, isWrong, label)
  }
  const good = { track: 'push' as const, sunset: '2027-12-31', link: 'https://hub.example/' }
  for (const change of [
    ...[{}, { sunset: '2027-12-31T12:00:00Z' }, { link: 'http://a.example/?b=c#d' }],
    ...[{ sunset: 'soon' }, { sunset: '31.12.2027' }, { link: 'ftp://a.example' }, { link: 'https://a b' }],
  ]) {
    const request = { ...good, ...change }
    const isWrong = 'error' in checkAnnouncement(request)
    t.equal(
      whyWrong(operations['lifecycle.announce'], request) !== undefined,
      isWrong,
      JSON.stringify(change),
    )
  }
})

t.test('a position that no number of JavaScript has exactly is refused', async (t) => {
  for (const [name, argument] of [
    ['events.list', 'before'],
    ['events.list', 'since'],
    ['events.tail', 'after'],
  ] as const) {
    t.equal(whyWrong(operations[name], { [argument]: 2 ** 53 - 1 }), undefined)
    t.match(whyWrong(operations[name], { [argument]: 1e21 }), new RegExp(`^${argument} must be .*position`))
  }
  const { 'events.list': own } = ownOperations
  t.match(whyWrong(own, { before: 2 ** 53 }), /^before must be a position/)
})

t.test('a wrong item of a list is named, with what was expected', async (t) => {
  const filters = ['radio/#', 'radio//data']
  t.equal(
    whyWrong(operations['credentials.add'], { role: 'subscriber', label: 'x', filters }),
    'each of filters must be a topic filter within radio/#, not "radio//data"',
  )
  t.match(
    whyWrong(operations['users.add'], { email: 'a@b.example', institution: 'x' }),
    /^institution must be an institution/,
  )
})
