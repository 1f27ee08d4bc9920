import { quote } from '../../event/error.ts'
import { isInstitutionUrn, isLivestreamUrn } from '../../event/format.ts'

/** The states of a subscription's queue by which operators can select. */
export const states = [
  'idle',
  'beginning',
  'delivering',
  'behind',
  'retrying',
  'paused',
  'disabled',
  'closed',
] as const

/** The criteria by which an operator selects subscriptions. An absent field excludes no subscription. */
interface Selection {
  institution?: string | undefined
  livestream?: string | undefined
  state?: string | undefined
  /** Maximum number of subscriptions that are listed. */
  limit?: number | undefined
}

/** Checks the criteria of an operator. Returns them, or an error text. */
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

/** Whether a livestream is given by external id or title, instead of by URN. */
export function isLivestreamName(livestream: string): boolean {
  return livestream !== '' && !livestream.startsWith('urn:')
}

/** The subscriptions that meet the criteria, up to the limit. */
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
