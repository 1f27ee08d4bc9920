/** Says what a value must be, if it is not: `a text`, for example. Undefined: the value is right. */
export type Form = (value: unknown) => string | undefined

export const anything: Form = () => undefined
export const text: Form = (value) => (typeof value === 'string' ? undefined : 'a text')
export const flag: Form = (value) => (typeof value === 'boolean' ? undefined : 'true or false')
/** JSON has no end of numbers: `1e999` is read as Infinity. */
export const number: Form = (value) => (Number.isFinite(value) ? undefined : 'a number')

/** An integer from `least` on. Larger ones than a double holds exactly are none. */
export function integer(least: number): Form {
  return (value) =>
    Number.isSafeInteger(value) && Number(value) >= least ? undefined : `an integer from ${least} on`
}

/** The latest time that a record may have, milliseconds: the year 33658. `Date` throws some time after it. */
const lastMoment = 1e15

/** A time in milliseconds since the epoch. */
export const moment: Form = (value) =>
  typeof value === 'number' && Math.abs(value) <= lastMoment ? undefined : 'a time in milliseconds'

/** A moment, ISO 8601. From another text `toISOString` would throw later, and a comparison would never hold. */
export const instant: Form = (value) =>
  typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? undefined : 'a time of ISO 8601'

/** A URL that may stand in a header and in a page. */
export const webUrl: Form = (value) =>
  typeof value === 'string' && /^https?:\/\/[!#-;=?-~]+$/.test(value) && URL.canParse(value)
    ? undefined
    : 'an http or https URL'

export function oneOf(...values: readonly unknown[]): Form {
  return (value) =>
    values.includes(value) ? undefined : values.map((each) => JSON.stringify(each)).join(' or ')
}

export function orNull(form: Form): Form {
  return (value) => {
    const expected = value === null ? undefined : form(value)
    return expected && `null or ${expected}`
  }
}

export function eitherOf(...forms: readonly Form[]): Form {
  return (value) => {
    const expected = forms.map((form) => form(value))
    return expected.includes(undefined) ? undefined : expected.join(' or ')
  }
}

export function list(form: Form): Form {
  return (value) => {
    if (!Array.isArray(value)) return 'a list'
    const expected = first(value, form)
    return expected && `a list in which each item is ${expected}`
  }
}

/** A list with one value of each form, in this order. */
export function tuple(...forms: readonly Form[]): Form {
  return (value) => {
    if (!Array.isArray(value) || value.length < forms.length) return `a list of ${forms.length}`
    const expected = first(forms, (form, nth) => form(value[nth]))
    return expected && `a list that has ${expected}`
  }
}

/** An object with these fields. Fields of `optional` may be absent; fields that neither names may be anything. */
export function object(
  required: Readonly<Record<string, Form>>,
  optional: Readonly<Record<string, Form>> = {},
): Form {
  const forms = [
    ...Object.entries(required).map(([name, form]) => ({ name, form, isRequired: true })),
    ...Object.entries(optional).map(([name, form]) => ({ name, form, isRequired: false })),
  ]
  return (value) => {
    if (!isObject(value)) return 'a JSON object'
    return first(forms, ({ name, form, isRequired }) => {
      const field = Object.hasOwn(value, name) ? value[name] : undefined
      const expected = field === undefined && !isRequired ? undefined : form(field)
      return expected && `a JSON object whose ${JSON.stringify(name)} is ${expected}`
    })
  }
}

/** An object whose fields, of any names, all have this form. */
export function fields(form: Form): Form {
  return (value) => {
    if (!isObject(value)) return 'a JSON object'
    const expected = first(Object.values(value), form)
    return expected && `a JSON object in which each field is ${expected}`
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function first<Item>(
  items: readonly Item[],
  expectation: (item: Item, nth: number) => string | undefined,
): string | undefined {
  for (const [nth, item] of items.entries()) {
    const expected = expectation(item, nth)
    if (expected !== undefined) return expected
  }
  return undefined
}
