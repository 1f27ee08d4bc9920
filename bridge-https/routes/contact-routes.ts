import { httpsError, refuse } from '../answer.ts'
import { contactPage, contactPages, contactScript } from '../contact-page.ts'
import { ContactBody, TraceAnswer } from '../description/schemas.ts'
import type { InstitutionContact, InstitutionContacts } from '../users/institution-contacts.ts'
import type { Route } from './route.ts'

export interface ContactParts {
  contacts: Pick<InstitutionContacts, 'confirm' | 'unsubscribe'>
  /** The audit log. */
  audit: {
    record(entry: { who: string; action: string; target: string; detail: unknown }): Promise<void>
  }
}

const summaries = {
  confirm: 'Confirm the contact of an institution',
  unsubscribe: 'End the mails to the contact of an institution',
}

/** The pages behind the links in mails to contacts of institutions (open.md §7), and the requests of their buttons. */
export function contactRoutes({ contacts, audit }: ContactParts): Route[] {
  const base = { tag: 'Mails' } as const
  return [
    ...contactPages.flatMap((name): Route[] => [
      {
        ...base,
        method: 'GET',
        path: `/contact/${name}`,
        id: `${name}ContactPage`,
        summary: `Page behind a link of a mail: ${summaries[name].toLowerCase()}`,
        answers: { 200: { description: 'Page', mediaType: 'text/html' } },
        handle: () => ({
          status: 200,
          body: contactPage(name),
          headers: { 'content-type': 'text/html; charset=utf-8' },
        }),
      },
      {
        ...base,
        method: 'POST',
        path: `/contact/${name}`,
        id: `${name}Contact`,
        summary: summaries[name],
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
      path: '/contact/page.js',
      id: 'contactScript',
      summary: 'Script of the pages behind links of mails',
      answers: { 200: { description: 'Script', mediaType: 'text/javascript' } },
      handle: () => ({
        status: 200,
        body: contactScript,
        headers: { 'content-type': 'text/javascript; charset=utf-8' },
      }),
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
