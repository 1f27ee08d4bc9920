import { boolean, instant, one, string } from '../event/answer-fields.ts'
import { Type } from '../event/type.ts'
import { reasonOf } from '../telemetry/reason.ts'
import { email, institution } from './arguments.ts'
import { refusal, unknownName } from './errors.ts'
import { anEmail, anInstitution } from './examples.ts'
import { changes, loses, reads } from './operation.ts'

export const contactStates = ['unconfirmed', 'confirmed', 'unsubscribed'] as const

export const contact = Type.Object({
  institutionId: string,
  email: string,
  state: one(...contactStates),
  setAt: instant,
})

const placed = { view: 'users', of: 'institutions.contacts', by: 'institution' } as const

/** The contacts of institutions, who are mailed about silence, loops and refusals (open.md §7). */
export const institutionOperations = {
  'institutions.contacts': reads('where institutions are mailed about silence, loops and refusals', {
    console: {
      view: 'users',
      title: 'Contacts of institutions',
      empty: 'No institution has a contact.',
      columns: ['institutionId', ['E-mail', 'email'], 'state', ['Set', 'setAt']],
    },
    hubctl: {
      columns: [['INSTITUTION', 'institutionId'], 'email', 'state', 'setAt'],
      nothing: 'No institution has a contact.',
    },
    result: Type.Array(contact),
    run: ({ contacts }) => contacts.list(),
  }),
  'institutions.contact': changes(
    'set the address to which an institution is mailed; it is confirmed by a link',
    {
      args: { institution, email },
      example: { institution: anInstitution, email: anEmail },
      console: {
        view: 'users',
        title: 'Set a contact',
        fields: {
          email: { label: 'E-mail address', hint: 'It gets a link to confirm it, and nothing else before.' },
        },
        answer: {
          title: 'A link was mailed',
          text: ['{email} gets mails once it is confirmed by that link, which works until {expiresAt}.'],
        },
      },
      hubctl: {
        done: '{email} was mailed a link to confirm it, which works until {expiresAt}. Nothing else is mailed before.',
        about:
          'In place of a former contact. It needs a [mail server](operators.md#contacts-of-institutions).',
      },
      result: Type.Object({ ...contact.properties, expiresAt: instant }),
      async run({ contacts, institutionMail, feed }, { institution, email }, { note }) {
        if (!institutionMail)
          throw refusal('no mail server is configured: the operator sets smtp in the file of HUB_CONFIG')
        if (feed.current()?.hasInstitution(institution) === false)
          throw unknownName('institution', institution)
        const wait = await institutionMail.mayConfirm(email)
        if (wait !== undefined)
          throw refusal(`${email} had three of these mails within the hour: again in ${wait} s`)
        await note(institution, { email })
        const unconfirmed = await contacts.set(institution, email)
        await institutionMail.confirm(unconfirmed).catch((error: unknown) => {
          const why = `the contact is set, and the link to confirm it was not mailed: ${reasonOf(error)}`
          throw refusal(`${why}. Set it again to mail another one`)
        })
        return { ...unconfirmed.contact, expiresAt: unconfirmed.expiresAt }
      },
    },
  ),
  'institutions.remove-contact': loses('mail nothing more to the contact of an institution, and forget it', {
    args: { institution },
    example: { institution: anInstitution },
    console: {
      ...placed,
      title: 'Remove',
      loss: ['{email} gets no more mails about {institutionId}, and is forgotten.'],
    },
    hubctl: { done: 'Removed the contact of {institutionId}.' },
    result: Type.Object({ institutionId: string, removed: boolean }),
    async run({ contacts }, { institution }, { note }) {
      const known = contacts.list().find(({ institutionId }) => institutionId === institution)
      if (!known) throw unknownName('contact of', institution)
      await note(institution, { email: known.email })
      if (!(await contacts.remove(institution))) throw unknownName('contact of', institution)
      return { institutionId: institution, removed: true }
    },
  }),
}
