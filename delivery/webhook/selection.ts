import { quote } from '../../event/error.ts'
import { isInstitutionUrn, isLivestreamUrn } from '../../event/urn.ts'

/** How the queue of a subscription can stand, as operators see it. */
const states = ['idle', 'beginning', 'delivering', 'retrying', 'paused', 'disabled', 'closed'] as const

/** The subscriptions that an operator asks for. An absent field excludes none. */
interface Selection {
  institution?: string | undefined
  livestream?: string | undefined
  state?: string | undefined
  /** At most so many. */
  limit?: number | undefined
}

/** The selection that is asked for, or why it is not valid. Nothing of `asked` is checked yet. */
export function readSelection(asked: Record<string, unknown>): Selection | { error: string } {
  const { institution, livestream, state, limit } = asked
  if (!isAbsentOr(isInstitution, institution)) {
    return wrong('institution', 'an institution URN (urn:org:institution:<id>)', institution)
  }
  if (!isAbsentOr(isLivestream, livestream)) {
    return wrong('livestream', 'a livestream URN (urn:org:permanent-livestream:<id>)', livestream)
  }
  if (!isAbsentOr(isState, state)) return wrong('state', `one of ${states.join(', ')}`, state)
  if (!isAbsentOr(isLimit, limit)) return wrong('limit', 'a whole number from 1', limit)
  return { institution, livestream, state, limit }
}

/** Whether a text is the external id or title of a livestream, not its URN. Only the node knows these names. */
export function isLivestreamName(livestream: string): boolean {
  return livestream !== '' && !livestream.startsWith('urn:')
}

/** The subscriptions of a selection, up to its limit. */
export function select<One extends { institutionId: string; livestream: { id: string }; state: string }>(
  all: readonly One[],
  { institution, livestream, state, limit = all.length }: Selection,
): One[] {
  const isAsked = (one: One) =>
    (institution === undefined || one.institutionId === institution) &&
    (livestream === undefined || one.livestream.id === livestream) &&
    (state === undefined || one.state === state)
  return all.filter(isAsked).slice(0, limit)
}

function isInstitution(value: unknown): value is string {
  return typeof value === 'string' && isInstitutionUrn(value)
}

function isLivestream(value: unknown): value is string {
  return typeof value === 'string' && isLivestreamUrn(value)
}

function isState(value: unknown): value is string {
  return states.some((state) => state === value)
}

function isLimit(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1
}

function isAbsentOr<T>(is: (value: unknown) => value is T, value: unknown): value is T | undefined {
  return value === undefined || is(value)
}

function wrong(name: string, expected: string, value: unknown): { error: string } {
  return { error: `${name} must be ${expected}, not ${quote(value)}` }
}
