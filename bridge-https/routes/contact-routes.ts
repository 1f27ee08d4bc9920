import { httpsError, refuse } from '../answer.ts'
import { ContactBody, TraceAnswer } from '../description/schemas.ts'
import { linkPage, linkScript } from '../link-page.ts'
import type { InstitutionContact, InstitutionContacts } from '../users/institution-contacts.ts'
import type { Route } from './route.ts'

interface ContactParts {
  contacts: Pick<InstitutionContacts, 'confirm' | 'unsubscribe'>
  /** The audit log. */
  audit: {
    record(entry: { who: string; action: string; target: string; detail: unknown }): Promise<void>
  }
}

const pages = {
  confirm: {
    summary: 'Confirm the contact of an institution',
    title: 'Mails about your livestreams',
    text: 'The hub mails to this address when a livestream of your institution is silent, plays in a loop, or when events are refused.',
    button: 'Mail them to me',
    done: 'The address is confirmed. Each mail has a link that ends them.',
  },
  unsubscribe: {
    summary: 'End the mails to the contact of an institution',
    title: 'No more mails about your livestreams',
    text: 'The hub will mail nothing more about your institution to this address.',
    button: 'No more mails',
    done: 'You get no more of these mails. An operator of the hub can set the address again.',
  },
} as const
const names = Object.keys(pages) as (keyof typeof pages)[]
const script = '/contact/page.js'
const incomplete = 'Copy all of it from the mail.'

/** The pages behind the links in mails to contacts of institutions (open.md §7), and the requests of their buttons. */
export function contactRoutes({ contacts, audit }: ContactParts): Route[] {
  const base = { tag: 'Mails' } as const
  return [
    ...names.flatMap((name): Route[] => [
      {
        ...base,
        method: 'GET',
        path: `/contact/${name}`,
        id: `${name}ContactPage`,
        summary: `Page behind a link of a mail: ${pages[name].summary.toLowerCase()}`,
        answers: { 200: { description: 'Page', mediaType: 'text/html' } },
        handle: () => linkPage({ ...pages[name], content: `<p>${pages[name].text}</p>`, script, incomplete }),
      },
      {
        ...base,
        method: 'POST',
        path: `/contact/${name}`,
        id: `${name}Contact`,
        summary: pages[name].summary,
        description: 'With the token of the link. Asking again does nothing more.',
        body: [ContactBody],
        answers: { 200: { description: 'Done', schema: TraceAnswer } },
        async handle({ body }) {
          const { token } = body as ContactBody
          if (!(await contacts[name](token, record))) return refuse(400, [httpsError('contact.invalid')])
          return { status: 200, body: { trace: null } }
        },
      },
    ]),
    {
      ...base,
      method: 'GET',
      path: script,
      id: 'contactScript',
      summary: 'Script of the pages behind links of mails',
      answers: { 200: { description: 'Script', mediaType: 'text/javascript' } },
      handle: linkScript,
    },
  ]

  /** The person at the address changes what the operator sees. */
  function record({ email, institutionId, state }: InstitutionContact): Promise<void> {
    return audit.record({
      who: email,
      action: 'institutions.contact',
      target: institutionId,
      detail: { state },
    })
  }
}
